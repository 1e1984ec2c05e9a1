package comporta_test

import (
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// together is one request of several limits, in one step.
func together(now comporta.Instant, takes []comporta.Take, states ...*bench) ([]comporta.Taken, comporta.Outcome) {
	cells, out := make([]comporta.Cell, len(takes)), make([]comporta.Taken, len(takes))
	for i, b := range states {
		cells[i] = comporta.Cell{State: b.state, Log: b.entries}
	}
	comporta.AdvanceAll(takes, cells, now, out)
	for i, b := range states {
		if cells[i].Changed {
			b.state, b.entries = cells[i].State, b.entries.Apply(cells[i].Edit)
		}
	}
	return out, comporta.Resolve(takes, out)
}

// TestAttemptsAreChargedWhateverTheOthersSay: two a minute, by attempts, beside one
// a second. The second attempt is denied by the other limit and fills this one, so
// that asking again waits for the minute to end.
func TestAttemptsAreChargedWhateverTheOthersSay(t *testing.T) {
	login := compile(t, comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 2, Window: time.Minute, Charge: comporta.Attempts})
	calls := compile(t, comporta.Limit{Limit: 1, Window: time.Second})
	var a, b bench
	takes := []comporta.Take{{Rule: login, Cost: 1}, {Rule: calls, Cost: 1}}
	if _, o := together(at(12, 0, 10), takes, &a, &b); !o.Allowed {
		t.Fatalf("the first: %+v", o)
	}
	out, o := together(at(12, 0, 10), takes, &a, &b)
	if !out[0].Allowed || out[0].Remaining != 0 || out[0].RetryAfter != 0 || out[0].AskAgain != 50*time.Second {
		t.Errorf("the attempt: %+v", out[0])
	}
	if want := (comporta.Outcome{RetryAfter: 50 * time.Second}); o != want {
		t.Errorf("the answer: %+v, want %+v", o, want)
	}
	if _, o := together(at(12, 1, 0), takes, &a, &b); !o.Allowed {
		t.Errorf("as told: %+v", o)
	}
}

func TestShadowsRefuseAndDelayNothing(t *testing.T) {
	queue := compile(t, comporta.Limit{Algorithm: comporta.LeakyBucket, Limit: 1, Window: time.Second, Burst: 2})
	hammered := compile(t, comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 1, Window: time.Minute, Charge: comporta.Attempts})
	plain := compile(t, comporta.Limit{Limit: 3, Window: time.Hour})
	var a, b, c bench
	takes := []comporta.Take{{Rule: queue, Cost: 1, Shadow: true}, {Rule: hammered, Cost: 1, Shadow: true}, {Rule: plain, Cost: 1}}
	for i := range 3 {
		out, o := together(at(12, 0, 0), takes, &a, &b, &c)
		if want := (comporta.Outcome{Allowed: true}); o != want {
			t.Errorf("request %d: %+v", i, o)
		}
		if out[0].Allowed != (i < 2) || out[1].Allowed != (i < 1) {
			t.Errorf("request %d: the shadows report %+v", i, out[:2])
		}
	}
	if a.state.Full != 2_000_000 || b.state.Cur != 1 {
		t.Errorf("what would be denied was charged: %+v, %+v", a.state, b.state)
	}
	before := a.state
	if _, o := together(at(12, 0, 1), takes, &a, &b, &c); o.Allowed || a.state != before {
		t.Errorf("a denied request was charged to a shadow: %+v, %+v", o, a.state)
	}
}

// TestChangedNumbersKeepWhatIsUsed follows each conversion through changes that
// the next numbers could hide.
func TestChangedNumbersKeepWhatIsUsed(t *testing.T) {
	type change struct {
		limit string
		at    comporta.Instant
		cost  int64
		want  int64 // remaining
	}
	for _, tt := range []struct {
		algorithm comporta.Algorithm
		changes   []change
	}{
		{comporta.SlidingLog, []change{
			{"10/h", at(12, 0, 0), 4, 6}, {"10/h", at(12, 9, 30), 2, 4},
			{"10/min", at(12, 10, 0), 0, 8}, // those past the minute leave
			{"10/h", at(12, 10, 0), 0, 8},   // and do not come back
			{"1/h", at(12, 10, 0), 0, 0}, {"10/h", at(12, 10, 0), 0, 9},
		}},
		{comporta.FixedWindow, []change{
			{"10/min", at(12, 0, 10), 8, 2}, {"5/min", at(12, 0, 20), 0, 0}, {"10/min", at(12, 0, 30), 0, 5},
			{"10/h", at(12, 0, 40), 0, 5}, {"10/h", at(12, 59, 59), 0, 5}, {"10/h", at(13, 0, 0), 0, 10},
		}},
		{comporta.SlidingCounter, []change{
			{"10/min", at(12, 0, 10), 8, 2}, {"10/min", at(12, 1, 30), 1, 5}, // 8 × ½ + 1
			{"20/min", at(12, 1, 30), 0, 15}, {"6/min", at(12, 1, 30), 0, 2}, // 6 × ½ + 1
			{"6/h", at(12, 1, 31), 0, 2}, // 6 × 29/60 + 1, rounded up
			{"6/h", at(13, 30, 0), 0, 4}, // half of it
			{"6/min", at(13, 30, 0), 0, 4},
		}},
		{comporta.TokenBucket, []change{
			{"10/min", at(12, 0, 0), 8, 2}, {"20/min", at(12, 0, 3), 0, 12}, // 7.5 used, rounded up
			{"20/min burst 5", at(12, 0, 3), 0, 0}, {"20/min", at(12, 0, 3), 0, 15},
		}},
		{comporta.LeakyBucket, []change{
			{"10/min", at(12, 0, 0), 8, 2}, {"20/min", at(12, 0, 3), 0, 12}, {"unlimited", at(12, 0, 3), 0, 1<<63 - 1},
		}},
	} {
		var b bench
		for _, c := range tt.changes {
			limit, err := comporta.ParseLimit(c.limit)
			if err != nil {
				t.Fatal(err)
			}
			limit.Algorithm = tt.algorithm
			if d := b.take(compile(t, limit), c.at, c.cost); !d.Allowed || d.Remaining != c.want {
				t.Errorf("%v %s at %v: %+v, want %d remaining", tt.algorithm, c.limit, c.at.Time(), d, c.want)
			}
		}
	}

	// With stagger the window is another, and n stays. The phase is half a window.
	plain := comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 5, Window: time.Minute}
	staggered := plain
	staggered.Stagger = true
	state, _ := compile(t, plain).Step(comporta.State{Phase: 30_000_000}, at(12, 0, 20), 3)
	if _, d := compile(t, staggered).Step(state, at(12, 0, 40), 1); d.Remaining != 1 || d.ResetAfter != 50*time.Second {
		t.Errorf("staggered: %+v", d)
	}

	// Under another algorithm the key starts anew.
	var b bench
	log := compile(t, comporta.Limit{Algorithm: comporta.SlidingLog, Limit: 5, Window: time.Hour})
	b.take(log, at(12, 0, 0), 5)
	if d := b.take(compile(t, comporta.Limit{Limit: 5, Window: time.Hour}), at(12, 0, 0), 1); d.Remaining != 4 || len(b.entries) != 0 {
		t.Errorf("from a log to a bucket: %+v, %v", d, b.entries)
	}
	if d := b.take(log, at(12, 0, 0), 1); d.Remaining != 4 {
		t.Errorf("and back: %+v", d)
	}
}
