// Package redisstore keeps the states of limits in Redis or Valkey, so that any
// number of instances count as one: a [comporta.Store] whose step runs in the
// server, in one script, on the server's own clock.
//
// The client comes in through [Client]. The packages below this one adapt those
// that exist: redisstore/rueidis opens one by its address, redisstore/goredis
// takes a go-redis client that a program has already.
package redisstore
