package storetest

import (
	"math/big"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"pgregory.net/rapid"
)

// A Law is what every limit keeps, whatever is asked of it.
type Law struct {
	// Name says the law.
	Name string
	// Check tries the law on a limit in a state that it draws, and fails t.
	Check func(t *rapid.T, limit comporta.Limit)
}

// AllLaws are the laws.
func AllLaws() []Law {
	return []Law{
		{"a denial spends nothing", denialSpendsNothing},
		{"a peek changes nothing", peekChangesNothing},
		{"patience pays", patiencePays},
		{"remaining grows when it was said to", remainingGrows},
		{"full again is a new key", fullIsNew},
		{"only what can never pass says never", neverSaysNever},
		{"never more than the bound", neverMoreThanTheBound},
		{"a queue leaves at its pace", queueLeavesAtItsPace},
		{"a clock that steps back grants nothing", stepBackGrantsNothing},
		{"attempts close the limit", attemptsClose},
		{"settling at the cost changes nothing", settlingAtCostChangesNothing},
		{"a refund is never past full", refundNeverPastFull},
		{"a debt is at most one full budget below empty", debtHasAFloor},
		{"changed numbers keep what is used", changedNumbersKeepUsed},
		{"several limits are all or nothing", allOrNothing},
	}
}

// Laws tries every law on limits of that generator: [Limits] for all kinds, or
// rapid.Just(limit) for one. A failure prints the seed with which it is had again.
func Laws(t *testing.T, limits *rapid.Generator[comporta.Limit]) {
	for _, law := range AllLaws() {
		t.Run(law.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { law.Check(t, limits.Draw(t, "limit")) })
		})
	}
}

// AnyLaw tries one law of all on one limit of all kinds: for fuzzing from bytes,
// with rapid.MakeFuzz.
func AnyLaw(t *rapid.T) {
	laws := AllLaws()
	law := laws[rapid.IntRange(0, len(laws)-1).Draw(t, "law")]
	law.Check(t, Limits().Draw(t, "limit"))
}

func denialSpendsNothing(t *rapid.T, limit comporta.Limit) {
	limit.Charge = comporta.Admitted
	s := newSubject(t, limit)
	s.take(0) // forgets what is full
	before := s.copy()
	if d := s.take(cost(t, s.rule.Full())); !d.Allowed && !s.same(before) {
		t.Fatalf("denied, and the state went from %+v to %+v", before.kept, s.kept)
	}
}

func peekChangesNothing(t *rapid.T, limit comporta.Limit) {
	s := newSubject(t, limit)
	s.pass(t)
	before := s.copy()
	first := s.take(0)
	if !first.Allowed || first.Delay != 0 || first.RetryAfter != 0 || first.AskAgain != 0 || first.Receipt != (comporta.Receipt{}) {
		t.Fatalf("a peek is allowed at once and spends nothing: %+v", first)
	}
	if !s.same(before) && !s.full() {
		t.Fatalf("the state went from %+v to %+v", before.kept, s.kept)
	}
	if second := s.take(0); second != first {
		t.Fatalf("two peeks differ: %+v, %+v", first, second)
	}
}

func patiencePays(t *rapid.T, limit comporta.Limit) {
	s := newSubject(t, limit)
	c := cost(t, s.rule.Full())
	d := s.take(c)
	if d.Allowed || d.RetryAfter == comporta.Never {
		return
	}
	if d.RetryAfter <= 0 || d.RetryAfter%time.Microsecond != 0 {
		t.Fatalf("denied with a retry after %v", d.RetryAfter)
	}
	if early := s.after(d.RetryAfter - time.Microsecond).take(c); early.Allowed {
		t.Fatalf("told to wait %v, and one microsecond less was enough: %+v", d.RetryAfter, early)
	}
	if then := s.after(d.RetryAfter).take(c); !then.Allowed {
		t.Fatalf("told to wait %v, and then: %+v", d.RetryAfter, then)
	}
}

func remainingGrows(t *rapid.T, limit comporta.Limit) {
	s := newSubject(t, limit)
	d := s.take(cost(t, s.rule.Full()))
	if d.Remaining < 0 || d.Remaining > d.Limit || d.ResetAfter < 0 || d.ResetAfter > d.FullAfter {
		t.Fatalf("impossible: %+v", d)
	}
	if d.ResetAfter == 0 {
		if d.Remaining != d.Limit {
			t.Fatalf("not full, and nothing grows: %+v", d)
		}
		return
	}
	if early := s.after(d.ResetAfter - time.Microsecond).take(0); early.Remaining != d.Remaining {
		t.Fatalf("reset after %v, and one microsecond less was enough: %d became %d", d.ResetAfter, d.Remaining, early.Remaining)
	}
	if then := s.after(d.ResetAfter).take(0); then.Remaining <= d.Remaining {
		t.Fatalf("reset after %v, and %d became %d", d.ResetAfter, d.Remaining, then.Remaining)
	}
}

func fullIsNew(t *rapid.T, limit comporta.Limit) {
	s := newSubject(t, limit)
	d := s.take(cost(t, s.rule.Full()))
	if (d.FullAfter == 0) != s.full() {
		t.Fatalf("full after %v, and the state is %+v", d.FullAfter, s.kept)
	}
	if d.FullAfter == 0 {
		return
	}
	early := s.after(d.FullAfter - time.Microsecond)
	if early.take(0); early.full() {
		t.Fatalf("full after %v, and one microsecond less was enough", d.FullAfter)
	}
	then := s.after(d.FullAfter)
	if look := then.take(0); !then.full() || look.Remaining != look.Limit || look.FullAfter != 0 || look.ResetAfter != 0 {
		t.Fatalf("full after %v, and then: %+v, %+v", d.FullAfter, look, then.kept)
	}
}

func neverSaysNever(t *rapid.T, limit comporta.Limit) {
	s := newSubject(t, limit)
	c := cost(t, s.rule.Full())
	d := s.take(c)
	impossible := c > s.rule.Full()
	if never := d.RetryAfter == comporta.Never; never != impossible || never && d.Allowed {
		t.Fatalf("a cost of %d of a full %d: %+v", c, s.rule.Full(), d)
	}
	if d.Allowed && d.RetryAfter != 0 {
		t.Fatalf("allowed, and to be tried again: %+v", d)
	}
}

// neverMoreThanTheBound counts requests when they go on, in windows that begin
// with each of them.
func neverMoreThanTheBound(t *rapid.T, limit comporta.Limit) {
	s := newSubject(t, limit)
	if !s.counts() {
		return
	}
	type passed struct {
		at    comporta.Instant
		units int64
	}
	var all []passed
	for range rapid.IntRange(1, 40).Draw(t, "takes") {
		before := s.now
		s.live(t, false)
		if seldom(t, "step back") {
			s.now = s.now.Add(-rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, comporta.MaxStep}).Draw(t, "by"))
		}
		// No further than what holds the clock: the last change, less a step.
		if s.kept.state.Zero() {
			s.now = max(s.now, before)
		}
		s.now = max(s.now, s.kept.state.At.Add(-comporta.MaxStep))
		if d := s.take(cost(t, s.rule.Full())); d.Receipt.Cost > 0 {
			all = append(all, passed{d.Receipt.At.Add(d.Delay), d.Receipt.Cost})
		}
	}
	lengths := []time.Duration{time.Microsecond, s.rule.FillTime(), limit.Window, limit.Window/3 + time.Microsecond, 3*limit.Window + time.Second}
	for _, over := range lengths {
		bound := s.rule.Bound(over)
		for _, begin := range all {
			var sum int64
			for _, p := range all {
				if p.at >= begin.at && p.at < begin.at.Add(over) {
					sum += p.units
				}
			}
			if sum > bound {
				t.Fatalf("%d units in the %v from %d, and the bound is %d: %v", sum, over, begin.at, bound, all)
			}
		}
	}
}

func queueLeavesAtItsPace(t *rapid.T, limit comporta.Limit) {
	if limit.Algorithm != comporta.LeakyBucket {
		return
	}
	s := newSubject(t, limit)
	for range rapid.IntRange(1, 20).Draw(t, "takes") {
		a := s.take(rapid.Int64Range(1, max(1, s.rule.Full())).Draw(t, "first"))
		b := s.take(1)
		if !a.Allowed || !b.Allowed {
			s.pass(t)
			continue
		}
		// One after the other at one instant: the second goes when the first's units have left.
		// Both delays are rounded up, so the time between is right to a microsecond.
		pace := big.NewInt(limit.Window.Microseconds())
		pace.Mul(pace, big.NewInt(a.Receipt.Cost)).Div(pace, big.NewInt(limit.Limit))
		if off := (b.Delay - a.Delay).Microseconds() - pace.Int64(); off < -1 || off > 1 {
			t.Fatalf("%d units at %s left after %v", a.Receipt.Cost, limit, b.Delay-a.Delay)
		}
	}
}
