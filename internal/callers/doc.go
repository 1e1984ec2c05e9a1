// Package callers holds the gateway against the clients that people call APIs
// with: each meets limits, a refused POST and an hour to wait, with its retries on.
// It has tests alone, which run the clients as their users do, and say in
// docs/clients.md what they saw.
package callers
