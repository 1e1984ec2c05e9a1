package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/storetest"
)

func slidingLog50(t testing.TB, change ...func(*comporta.Limit)) *comporta.Rule {
	return compile(t, "50/s", append([]func(*comporta.Limit){func(l *comporta.Limit) { l.Algorithm = comporta.SlidingLog }}, change...)...)
}

// TestLogIsTheModel: logs with many entries, of which some leave, some are given
// back in whatever order, and some are cut.
func TestLogIsTheModel(t *testing.T) {
	client := direct{redistest.Start(t)}
	clock := &storetest.Clock{}
	s, err := New(client, Options{Now: clock.Now, Prefix: client.Prefix, Heartbeat: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rules := []*comporta.Rule{slidingLog50(t), slidingLog50(t, func(l *comporta.Limit) { l.Charge = comporta.Attempts })}
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		clock.Set(comporta.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		b := &bench{t: t, store: s, client: client, clock: clock, model: &storetest.Model{Now: clock.Now}}
		rule := rapid.SampledFrom(rules).Draw(t, "rule")
		key := comporta.Key{Limit: "log", Identity: fmt.Sprint(run)}
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			clock.Advance(time.Duration(rapid.IntRange(0, 60).Draw(t, "ms")) * time.Millisecond)
			var waiting []*request
			for range rapid.IntRange(1, 4).Draw(t, "requests") {
				r := newRequest(1)
				if n := len(b.taken); n > 0 && rapid.Bool().Draw(t, "settles") {
					i := rapid.IntRange(0, n-1).Draw(t, "which")
					st := b.taken[i]
					b.taken = append(b.taken[:i:i], b.taken[i+1:]...)
					st.Rule, st.Actual = rule, rapid.Int64Range(0, st.Taken.Cost+1).Draw(t, "actual")
					r.settlement = &st
				} else {
					r.takes[0] = comporta.Take{Key: key, Rule: rule, Cost: rapid.Int64Range(0, 7).Draw(t, "cost")}
				}
				waiting = append(waiting, r)
			}
			for len(waiting) > 0 {
				waiting = b.call(waiting)
			}
		}
	})
}

// TestGivingBackIsCheap: what a settlement does to a log of whatever length is at
// its end, where the take was.
func TestGivingBackIsCheap(t *testing.T) {
	server := redistest.StartOwn(t)
	clock := &storetest.Clock{}
	s, err := New(direct{server}, Options{Now: clock.Now, Heartbeat: time.Hour, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rule := compile(t, "1000/h", func(l *comporta.Limit) { l.Algorithm = comporta.SlidingLog })
	var out [1]comporta.Taken
	take := func() {
		clock.Advance(time.Millisecond)
		if err := s.Take(t.Context(), []comporta.Take{{Key: alice, Rule: rule, Cost: 1}}, out[:]); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		take()
	}
	server.MustDo("CONFIG", "RESETSTAT")
	for range 3 {
		take()
		receipt := out[0].Receipt
		if err := s.Settle(t.Context(), []comporta.Settlement{{Key: alice, Rule: rule, Taken: receipt}}, out[:]); err != nil {
			t.Fatal(err)
		}
		if out[0].Remaining != 800 {
			t.Fatal(out[0].Decision)
		}
	}
	if stats := server.MustDo("INFO", "commandstats").(string); strings.Contains(stats, "cmdstat_set:") {
		t.Errorf("the log was written anew:\n%s", stats)
	}
}

func TestLogsAreNoLongerThanAValue(t *testing.T) {
	for most, right := range map[int]bool{0: true, 1 << 24: true, 1<<24 + 1: false, -1: false} {
		if err := (&Options{MaxLogEntries: most}).check(); (err == nil) != right {
			t.Errorf("%d entries: %v", most, err)
		}
	}
}
