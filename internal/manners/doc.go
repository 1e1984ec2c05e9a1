// Package manners is what a well-behaved caller does: when its next request may
// leave, and whether one that was refused is sent again. It decides as limits do:
// a state, with the instant as an argument; nothing here waits, reads a clock or
// knows what carries a request. Package client drives it with real time, the
// simulator with made-up time.
package manners
