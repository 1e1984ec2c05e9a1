// Package telemetry counts what the gateway does and tells it to Prometheus.
//
// Labels come from the policy (names of limits) or from fixed lists, never from
// a request: the number of series does not depend on what clients send. The
// rankings of clients alone hold identities, as they are stored, and their names.
package telemetry
