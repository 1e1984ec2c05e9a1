package memstore

import (
	"time"

	"github.com/comporta/comporta"
)

// clock tells the instant. It is anchored to the wall once, at the start, and
// goes on by the monotonic clock: a wall that is set while the process runs
// moves no limit.
type clock struct {
	start  time.Time
	anchor comporta.Instant
	given  func() time.Time // instead, where not nil
}

func newClock(given func() time.Time) clock {
	start := time.Now()
	return clock{start: start, anchor: comporta.InstantOf(start), given: given}
}

func (c *clock) now() comporta.Instant {
	if c.given != nil {
		return comporta.InstantOf(c.given())
	}
	return c.anchor + comporta.Instant(time.Since(c.start)/time.Microsecond)
}
