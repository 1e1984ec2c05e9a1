package redisstore

import "time"

var began = time.Now()

// monotonic is the time since the process began, in nanoseconds: it never steps.
func monotonic() int64 { return int64(time.Since(began)) }
