package probe

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
)

// Servers next door, where nothing is blurred: a sliding log and windows that begin
// with a request do the same for whoever takes all at once each time. They are told
// apart all the same.
func TestServersNextDoor(t *testing.T) {
	skipRaced(t)
	for _, c := range []struct {
		name   string
		limit  comporta.Limit
		decide func(int, time.Duration) func(time.Time) bool
	}{
		{"a sliding log", comporta.Limit{Algorithm: comporta.SlidingLog}, nil},
		{"INCR and EXPIRE", comporta.Limit{Algorithm: comporta.FixedWindow}, ownWindowOf},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out []outcome
			for seed := range uint64(20) {
				l := c.limit
				l.Limit, l.Window = []int64{3, 5, 10, 30}[seed%4], []time.Duration{time.Second, 2 * time.Second, 10 * time.Second}[seed%3]
				way := latency{20 * time.Microsecond, time.Duration(50+100*seed) * time.Microsecond}
				o := outcome{c: simCase{seed: seed, limit: l, there: way, back: way}}
				server := newSimServer(l, 0, seed, way, way)
				if c.decide != nil {
					server.decide = c.decide(int(l.Limit), l.Window)
				}
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(12345 * time.Millisecond)
					s := NewSession(server, plenty, nil)
					o.f, o.err = Learn(t.Context(), s)
					o.requests = len(s.Shots())
				})
				out = append(out, o)
			}
			if right, surelyWrong := report(t, out); right < 19 || surelyWrong > 0 {
				t.Errorf("%d of 20 right, %d wrong with certainty over 90%%", right, surelyWrong)
			}
		})
	}
}
