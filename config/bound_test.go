package config

import (
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

func TestBoundsInWords(t *testing.T) {
	hundred := comporta.Limit{Limit: 100, Window: time.Minute}
	with := func(change func(*comporta.Limit)) comporta.Limit {
		l := hundred
		change(&l)
		return l
	}
	for _, c := range []struct {
		limit comporta.Limit
		want  string
	}{
		{hundred, "at most 200 in any 60 s (100 at once, then 100 per 60 s)"},
		{with(func(l *comporta.Limit) { l.Burst = 20 }), "at most 120 in any 60 s (20 at once, then 100 per 60 s)"},
		{with(func(l *comporta.Limit) { l.MaxWait = 1500 * time.Millisecond }), "at most 200 in any 60 s (100 at once, then 100 per 60 s); what is over it waits up to 1s500ms"},
		{with(func(l *comporta.Limit) { l.Algorithm, l.Burst = comporta.LeakyBucket, 50 }), "at most 150 in any 60 s are let in, and go on evenly, 100 per 60 s, each after a wait under 30 s"},
		{with(func(l *comporta.Limit) { l.Algorithm = comporta.FixedWindow }), "at most 200 in any 60 s (100 in each window, twice that around a boundary)"},
		{with(func(l *comporta.Limit) { l.Algorithm = comporta.SlidingCounter }), "at most 199 in any 60 s (near 100 when traffic is even)"},
		{with(func(l *comporta.Limit) { l.Algorithm = comporta.SlidingLog }), "at most 100 in any 60 s, exactly"},
		{with(func(l *comporta.Limit) { l.Charge = comporta.Attempts }), "at most 200 in any 60 s (100 at once, then 100 per 60 s); refused attempts count too"},
		{with(func(l *comporta.Limit) { l.Limit, l.Window = 0, time.Hour }), "refuses every request"},
		{comporta.Limit{Unlimited: true}, "no bound"},
		{comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 10, Calendar: &comporta.Calendar{Period: comporta.Month}}, "at most 10 in each month from day 1, 00:00 UTC; up to twice that around its start"},
	} {
		rule, err := c.limit.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if got := boundWords(&policy.Limit{Per: identity.Everyone{}, Limit: c.limit}, rule); got != c.want {
			t.Errorf("%v %v: got %q, want %q", c.limit, c.limit.Algorithm, got, c.want)
		}
	}
}

func TestSpansAsPeopleSayThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Millisecond: "1 ms", time.Second: "1 s", 60 * time.Second: "60 s", 90 * time.Second: "90 s", 10 * time.Minute: "10 min",
		time.Hour: "1 h", 24 * time.Hour: "24 h", 7 * 24 * time.Hour: "7 days", 1500 * time.Microsecond: "1ms500us", 1500 * time.Millisecond: "1s500ms",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
