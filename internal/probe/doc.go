// Package probe finds out from outside how an API limits its callers, within a
// budget of requests and time that is never passed, and writes a report.
package probe
