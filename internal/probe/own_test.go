package probe

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
)

// ownWindowOf decides as INCR and EXPIRE do: a window begins with the first request
// after the last one.
func ownWindowOf(limit int, window time.Duration) func(time.Time) bool {
	var ends time.Time
	used := 0
	return func(at time.Time) bool {
		if !at.Before(ends) {
			ends, used = at.Add(window), 0
		}
		used++
		return used <= limit
	}
}

// haproxyOf decides as http_req_rate of HAProxy's stick tables, over the limit, in
// its whole milliseconds (freq_ctr.h and freq_ctr.c of HAProxy 2.6).
func haproxyOf(limit int, window time.Duration) func(time.Time) bool {
	period := window.Milliseconds()
	var tick, cur, prev int64
	return func(at time.Time) bool {
		now := at.UnixMilli()
		if now-tick < period {
			cur++
		} else {
			prev, cur = cur, 1
			if tick += period; now-tick >= period {
				prev, tick = 0, now
			}
			tick &^= 1
		}
		remain := tick + period - now
		return (prev*remain+cur*period)/period <= int64(limit)
	}
}

// Servers that keep to no clock's windows, as most counters do.
func TestWindowsThatBeginWithRequests(t *testing.T) {
	skipRaced(t)
	for _, kind := range []struct {
		name    string
		limit   comporta.Limit
		decide  func(int, time.Duration) func(time.Time) bool
		longest time.Duration
	}{
		{"INCR and EXPIRE", comporta.Limit{Algorithm: comporta.FixedWindow}, ownWindowOf, time.Minute},
		{"HAProxy", comporta.Limit{Algorithm: comporta.SlidingCounter, Charge: comporta.Attempts}, haproxyOf, 20 * time.Second},
	} {
		t.Run(kind.name, func(t *testing.T) {
			var out []outcome
			for seed := uint64(80_001); seed <= 80_012; seed++ {
				r := rand.New(rand.NewPCG(seed, 5))
				l := kind.limit
				l.Limit = []int64{3, 5, 10, 20, 50, 100}[r.IntN(6)]
				l.Window = min(kind.longest, []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute}[r.IntN(6)])
				way := latency{time.Duration(r.IntN(10)) * time.Millisecond, time.Duration(10+r.IntN(10)) * time.Millisecond}
				c := simCase{seed: seed, limit: l, there: way, back: way}
				server := newSimServer(l, 0, seed, way, way)
				server.decide = kind.decide(int(l.Limit), l.Window)
				o := outcome{c: c}
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(12345 * time.Millisecond)
					s := NewSession(server, plenty, nil)
					begun := time.Now()
					o.f, o.err = Learn(t.Context(), s)
					o.requests, o.time = len(s.Shots()), time.Since(begun)
				})
				out = append(out, o)
			}
			if right, surelyWrong := report(t, out); right < 11 || surelyWrong > 0 {
				t.Errorf("%d of 12 right, %d wrong with certainty over 90%%", right, surelyWrong)
			}
		})
	}
}
