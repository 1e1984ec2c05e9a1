package comporta_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// at is an instant of 2026-06-01, a Monday, in UTC.
func at(hour, minute, second int) comporta.Instant {
	return comporta.InstantOf(time.Date(2026, 6, 1, hour, minute, second, 0, time.UTC))
}

// TestEachWindowDoesWhatItsNameSays asks for five at 10:59 and five at 11:01 of 5/h.
func TestEachWindowDoesWhatItsNameSays(t *testing.T) {
	for _, tt := range []struct {
		algorithm comporta.Algorithm
		passes    int
		retry     time.Duration // of the eleventh, at 11:01
	}{
		{comporta.FixedWindow, 10, 59 * time.Minute},
		{comporta.SlidingLog, 5, 3480 * time.Second},
		{comporta.SlidingCounter, 5, 11 * time.Minute}, // 5 × 48/60 + 1 ≤ 5 at 11:12
	} {
		rule := compile(t, comporta.Limit{Algorithm: tt.algorithm, Limit: 5, Window: time.Hour})
		var b bench
		passes := 0
		for i := range 10 {
			if b.take(rule, at(10, 59+2*(i/5), 0), 1).Allowed {
				passes++
			}
		}
		if d := b.take(rule, at(11, 1, 0), 1); passes != tt.passes || d.RetryAfter != tt.retry {
			t.Errorf("%v: %d pass, and then %+v", tt.algorithm, passes, d)
		}
	}
}

func TestLongWindowsDoNotOverflow(t *testing.T) {
	rule := compile(t, comporta.Limit{Algorithm: comporta.SlidingLog, Limit: 3, Window: 30 * 24 * time.Hour})
	var b bench
	for i := range 4 {
		d := b.take(rule, at(0, 0, 0)+comporta.Instant(i*250_000), 1)
		if d.Allowed != (i < 3) {
			t.Errorf("call %d: %+v", i, d)
		}
		if i == 3 && d.RetryAfter != 2_592_000*time.Second-750*time.Millisecond {
			t.Errorf("the fourth is told %v", d.RetryAfter)
		}
	}
	if d := b.take(rule, at(0, 0, 3), 0); d.Remaining != 0 {
		t.Errorf("after 3 s: %+v", d)
	}

	fast := compile(t, comporta.Limit{Limit: 1_000_000, Window: time.Second})
	for _, idle := range []time.Duration{12 * time.Hour, 400 * 24 * time.Hour} {
		var b bench
		b.take(fast, at(0, 0, 0), 1_000_000)
		if d := b.take(fast, at(0, 0, 0).Add(idle), 1); !d.Allowed || d.Remaining != 999_999 {
			t.Errorf("idle for %v: %+v", idle, d)
		}
	}
}

func TestStaggerMovesEachKeysWindows(t *testing.T) {
	const window = int64(60_000_000)
	for _, algorithm := range []comporta.Algorithm{comporta.FixedWindow, comporta.SlidingCounter} {
		rule := compile(t, comporta.Limit{Algorithm: algorithm, Limit: 5, Window: time.Minute, Stagger: true})
		for _, identity := range []string{"203.0.113.7", "203.0.113.8", ""} {
			key := comporta.Key{Limit: "login", Identity: identity}
			sum := sha256.Sum256([]byte("login\x00" + identity))
			offset := int64(binary.BigEndian.Uint64(sum[:8]) % uint64(window))
			now := int64(at(12, 0, 0))
			end := ((now+offset)/window+1)*window - offset
			state := comporta.State{Phase: key.Phase()}
			if !rule.NeedsPhase(&state) {
				t.Fatal("a staggered rule needs no phase")
			}
			_, d := rule.Step(state, comporta.Instant(now), 5)
			want := time.Duration(end-now) * time.Microsecond
			if algorithm == comporta.SlidingCounter {
				want += time.Minute // all of it is gone a window later
			}
			if d.FullAfter != want {
				t.Errorf("%v of %q: full after %v, want %v", algorithm, identity, d.FullAfter, want)
			}
		}
	}
}

func TestStricter(t *testing.T) {
	allowed := func(remaining, limit int64, reset time.Duration) comporta.Decision {
		return comporta.Decision{Allowed: true, Remaining: remaining, Limit: limit, ResetAfter: reset}
	}
	denied := func(retry, reset time.Duration) comporta.Decision {
		return comporta.Decision{Limit: 10, RetryAfter: retry, ResetAfter: reset}
	}
	unlimited := allowed(math.MaxInt64, math.MaxInt64, 0)
	// Each binds more than all after it.
	order := []comporta.Decision{
		denied(comporta.Never, 0),
		denied(2*time.Second, 2),
		denied(2*time.Second, 1),
		denied(time.Second, 9),
		allowed(0, 10, 2),
		allowed(0, 0, 1), // 0/s, which only looks pass
		allowed(1, comporta.MaxUnits, 0),
		allowed(1, 3, 0),
		allowed(333_333_333_334, comporta.MaxUnits, 0), // a little over a third
		allowed(9, 10, 0),
		allowed(10, 10, 1),
		allowed(7, 7, 0),
		unlimited,
	}
	for i, a := range order {
		for j, b := range order {
			if got := comporta.Stricter(a, b); got != (i < j) {
				t.Errorf("%+v stricter than %+v: %v", a, b, got)
			}
		}
	}
}

func TestHeadersSpreadWhatRemains(t *testing.T) {
	bucket := compile(t, comporta.Limit{Limit: 60, Window: time.Minute, Burst: 20})
	counter := compile(t, comporta.Limit{Algorithm: comporta.SlidingLog, Limit: 60, Window: time.Minute})
	for _, tt := range []struct {
		rule *comporta.Rule
		d    comporta.Decision
		want time.Duration
	}{
		{bucket, comporta.Decision{Allowed: true, Remaining: 15, ResetAfter: time.Second}, 15 * time.Second},
		{bucket, comporta.Decision{Allowed: true, Remaining: 20}, 20 * time.Second},
		{bucket, comporta.Decision{Allowed: true, ResetAfter: time.Second}, time.Second},
		{bucket, comporta.Decision{Remaining: 15, ResetAfter: time.Second, RetryAfter: 3 * time.Second}, 3 * time.Second},
		{bucket, comporta.Decision{Remaining: 15, ResetAfter: time.Second, RetryAfter: comporta.Never}, 15 * time.Second},
		{counter, comporta.Decision{Allowed: true, Remaining: 15, ResetAfter: time.Second}, time.Second},
	} {
		if got := tt.rule.SpreadAfter(&tt.d); got != tt.want {
			t.Errorf("%s %+v: got %v, want %v", tt.rule.Limit(), tt.d, got, tt.want)
		}
	}
}

func TestBound(t *testing.T) {
	const day = 24 * time.Hour
	quota := func(p comporta.Period, z *time.Location) comporta.Limit {
		return comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 10, Calendar: &comporta.Calendar{Period: p, Zone: z}}
	}
	plain := func(a comporta.Algorithm) comporta.Limit {
		return comporta.Limit{Algorithm: a, Limit: 10, Window: time.Minute}
	}
	paris := zone(t, "Europe/Paris")
	for _, tt := range []struct {
		limit comporta.Limit
		over  time.Duration
		want  int64
	}{
		{plain(comporta.FixedWindow), time.Microsecond, 10},
		{plain(comporta.FixedWindow), time.Minute, 20},
		{plain(comporta.FixedWindow), time.Minute + time.Microsecond, 20},
		{plain(comporta.FixedWindow), time.Minute + 2*time.Microsecond, 30},
		{plain(comporta.SlidingLog), time.Minute, 10},
		{plain(comporta.SlidingLog), time.Minute + time.Nanosecond, 20},
		{plain(comporta.SlidingLog), time.Hour, 600},
		{plain(comporta.SlidingCounter), time.Microsecond, 10},
		{plain(comporta.SlidingCounter), time.Minute, 19},
		{plain(comporta.TokenBucket), time.Minute, 20},
		{comporta.Limit{Limit: 10, Window: time.Minute, Burst: 3}, time.Minute, 13},
		{comporta.Limit{Limit: 10, Window: time.Minute, Burst: 3, Algorithm: comporta.LeakyBucket}, 59 * time.Second, 12},
		{comporta.Limit{Limit: comporta.MaxUnits, Window: time.Millisecond}, math.MaxInt64, math.MaxInt64},
		{comporta.Limit{Window: time.Minute}, time.Hour, 0},
		{comporta.Limit{Unlimited: true}, time.Hour, math.MaxInt64},
		{plain(comporta.FixedWindow), 0, 0},
		{quota(comporta.Day, nil), time.Microsecond, 10},
		{quota(comporta.Day, nil), day, 20},
		{quota(comporta.Day, paris), time.Microsecond, 10},
		{quota(comporta.Day, paris), 23*time.Hour + time.Microsecond, 20},
		{quota(comporta.Day, paris), 23*time.Hour + 2*time.Microsecond, 30}, // about the short day
		{quota(comporta.Week, nil), 7 * day, 20},
		{quota(comporta.Month, nil), 28*day + time.Microsecond, 20},
		{quota(comporta.Month, nil), 28*day + 2*time.Microsecond, 30}, // about a February
		{quota(comporta.Month, nil), 59*day + 2*time.Microsecond, 40},
		{quota(comporta.Year, nil), 365*day + 2*time.Microsecond, 30},
	} {
		if got := compile(t, tt.limit).Bound(tt.over); got != tt.want {
			t.Errorf("%v %s in %v: got %d, want %d", tt.limit.Algorithm, tt.limit, tt.over, got, tt.want)
		}
	}
}

func TestInstants(t *testing.T) {
	for _, tt := range []struct {
		ns   int64
		want comporta.Instant
	}{{0, 0}, {999, 0}, {1000, 1}, {-1, -1}, {-1000, -1}, {-1001, -2}} {
		if got := comporta.InstantOf(time.Unix(0, tt.ns)); got != tt.want {
			t.Errorf("%d ns is %d µs, want %d", tt.ns, got, tt.want)
		}
	}
	now := at(12, 0, 0)
	if got := now.Add(1999 * time.Nanosecond).Sub(now); got != time.Microsecond {
		t.Errorf("1,999 ns later is %v later", got)
	}
	if got, want := fmt.Sprint(now.Time()), "2026-06-01 12:00:00 +0000 UTC"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSettleAfterAClockFault settles in the very call that finds the clock an
// hour back: what was later moved to now, and a take keeps its old instant.
func TestSettleAfterAClockFault(t *testing.T) {
	rule := compile(t, comporta.Limit{Algorithm: comporta.SlidingLog, Limit: 10, Window: 24 * time.Hour})
	var b bench
	first := b.take(rule, at(12, 0, 0), 2).Receipt
	second := b.take(rule, at(13, 0, 0), 3).Receipt
	for _, tt := range []struct {
		name  string
		now   comporta.Instant
		taken comporta.Receipt
		want  int64
	}{
		{"the later is not found", at(12, 0, 0), second, 5},
		{"the earlier is, beside what moved to it", at(12, 0, 0), first, 7},
		{"the earlier is, before what moved", at(12, 30, 0), first, 7},
		{"from before both, neither is", at(11, 0, 0), first, 5},
	} {
		again := b
		if d := again.settle(rule, tt.now, tt.taken, 0); d.Remaining != tt.want {
			t.Errorf("%s: %+v, want %d remaining", tt.name, d, tt.want)
		}
	}
}

// TestPlacesInAQueueBefore1970 gives back in a leaky bucket, whose places are
// instants, as after 1970: the last gets its units back, one of a queue that was
// empty since gets none.
func TestPlacesInAQueueBefore1970(t *testing.T) {
	rule := compile(t, comporta.Limit{Algorithm: comporta.LeakyBucket, Limit: 1, Window: time.Second, Burst: 5})
	for _, start := range []comporta.Instant{at(12, 0, 0), 0, -1, -at(12, 0, 0)} {
		var b bench
		left := b.take(rule, start-10_000_000, 5).Receipt
		last := b.take(rule, start, 3).Receipt
		if d := b.settle(rule, start, left, 0); d.Remaining != 2 {
			t.Errorf("at %d: %d remaining, want 2: an empty queue's place was given back", start, d.Remaining)
		}
		if d := b.settle(rule, start, last, 1); d.Remaining != 4 {
			t.Errorf("at %d: %d remaining, want 4: the last was not given back", start, d.Remaining)
		}
	}
}

func TestHeadersNameTheWindow(t *testing.T) {
	for _, tt := range []struct {
		limit comporta.Limit
		want  time.Duration
	}{
		{comporta.Limit{Limit: 100, Window: time.Minute, Algorithm: comporta.SlidingCounter}, time.Minute},
		{comporta.Limit{Limit: 100, Window: time.Minute, Burst: 20}, 12 * time.Second},
		{comporta.Limit{Limit: 3, Window: time.Second, Burst: 1}, 333_334 * time.Microsecond},
		{comporta.Limit{Limit: 1, Algorithm: comporta.FixedWindow, Calendar: &comporta.Calendar{Period: comporta.Month}}, 30 * 24 * time.Hour},
		{comporta.Limit{Window: time.Minute}, 0},
		{comporta.Limit{Unlimited: true}, 0},
	} {
		if got := compile(t, tt.limit).WindowAt(at(12, 0, 0)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.limit, got, tt.want)
		}
	}
}
