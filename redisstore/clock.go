package redisstore

import "time"

var began = time.Now()

func now() time.Time { return time.Now() }

// monotonic is the time since the process began, in nanoseconds from 1 up: it never steps.
func monotonic() int64 { return int64(time.Since(began)) + 1 }
