package gateway

import "time"

// The gateway asks the time here alone: for the log, for how long things took,
// and for the deadlines of connections. Limits are decided by the store's clock.

func now() time.Time { return time.Now() }

func since(t time.Time) time.Duration { return time.Since(t) }
