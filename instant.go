package comporta

import "time"

// An Instant is a point in time in whole microseconds since the Unix epoch.
// Nothing in an algorithm reads a clock: the instant is always an argument.
type Instant int64

// InstantOf is t in whole microseconds, rounded down.
func InstantOf(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Time is the instant as a time.Time, in UTC.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// Add is the instant d later; d is taken in whole microseconds, rounded towards zero.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d/time.Microsecond) }

// Sub is how long i is after j. It does not overflow for instants less than
// 292 years apart.
func (i Instant) Sub(j Instant) time.Duration { return micros(int64(i - j)) }

// micros is a number of microseconds as a duration.
func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
