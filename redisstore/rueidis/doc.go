// Package rueidis opens Redis for a store through github.com/redis/rueidis, which
// sends concurrent calls together over few connections.
package rueidis
