package probe

import (
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// What stands behind a limit may take its time, one request after the other: its
// answers come as evenly as those of a leaky bucket's queue, and are none.
func TestSlowServersBehindALimit(t *testing.T) {
	var out []outcome
	for _, algorithm := range []comporta.Algorithm{comporta.FixedWindow, comporta.SlidingLog, comporta.SlidingCounter, comporta.TokenBucket} {
		for _, slow := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond} {
			l := comporta.Limit{Algorithm: algorithm, Limit: 30, Window: 5 * time.Second}
			server := newSimServer(l, 5, uint64(len(out)), calm, calm)
			server.slow = slow
			o := outcome{c: simCase{seed: uint64(len(out)), limit: l}}
			o.f, o.err = learn(t, server, plenty)
			out = append(out, o)
		}
	}
	if right, surelyWrong := report(t, out); right < 11 || surelyWrong > 0 {
		t.Errorf("%d of %d right, %d wrong with certainty over 90%%", right, len(out), surelyWrong)
	}
}
