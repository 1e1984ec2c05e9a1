// Package memstore keeps a limiter's states in this process: exact, bounded,
// safe for concurrent use, and fast enough to stand in front of everything.
//
// The bargain. A take of a resident key allocates nothing, reads the monotonic
// clock once, and holds one of 1,024 locks for some twenty nanoseconds; a denial
// and a peek of one limit hold none at all, unless it is a sliding log. A key
// costs some 45 bytes that the garbage collector never looks at, a sliding log
// some hundred more and 8 to 12 bytes a request. Keys are kept as 106 bits of a
// keyed hash, never as text.
//
// The store is bounded (Options.MaxKeys). Keys that are full again are new keys,
// and cost nothing for long. When the bound is reached all the same, the store
// drops the key that is fullest of a sample, but none that is empty and none of
// a limit that takes an hour or more to fill; where there is none to drop, new
// keys share one overflow key of their limit. Stats tell how often.
//
// With Options.Save the states survive a restart, and of limits that take an
// hour or longer to fill, all but the last second survives a kill -9.
package memstore
