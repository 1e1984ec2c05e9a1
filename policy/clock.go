package policy

import (
	"sync/atomic"
	"time"

	"github.com/comporta/comporta"
)

// wall is the clock of an engine that was given none. It goes on by the monotonic
// clock, which costs half as much, and is set by the wall's again when it was not
// for a second: it follows one that is set while the process runs.
type wall struct {
	start time.Time
	ahead atomic.Int64 // the instant at the start, in microseconds
	set   atomic.Int64 // when it was set last, in nanoseconds from the start
}

func newWall() *wall {
	w := &wall{start: time.Now()}
	w.ahead.Store(w.start.UnixMicro())
	return w
}

func (w *wall) now() comporta.Instant {
	since := time.Since(w.start)
	if age := int64(since) - w.set.Load(); age < 0 || age >= int64(time.Second) {
		w.ahead.Store(time.Now().UnixMicro() - since.Microseconds())
		w.set.Store(int64(since))
	}
	return comporta.Instant(w.ahead.Load() + since.Microseconds())
}
