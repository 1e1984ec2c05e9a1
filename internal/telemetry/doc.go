// Package telemetry counts what the gateway does and tells it to Prometheus.
//
// Labels come from the policy (names of limits) or from fixed lists, never from
// a request: the number of series does not depend on what clients send. Nothing
// here holds an identity but as a hash under a key that the process forgets.
package telemetry
