package storetest

import (
	"time"

	"github.com/comporta/comporta"
	"pgregory.net/rapid"
)

func stepBackGrantsNothing(t *rapid.T, limit comporta.Limit) {
	s := newSubject(t, limit)
	s.take(cost(t, s.rule.Full()))
	if s.full() {
		return
	}
	s.now = s.kept.state.At // in a fixed window the last change may lie back
	c := cost(t, s.rule.Full())
	then := s.copy().take(c)

	small := s.after(-rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, comporta.MaxStep}).Draw(t, "small"))
	if d := small.take(c); d != then || small.faults != s.faults {
		t.Fatalf("a small step back: %+v became %+v, with %d faults", then, d, small.faults-s.faults)
	}
	large := s.after(-comporta.MaxStep - rapid.SampledFrom([]time.Duration{time.Microsecond, time.Hour}).Draw(t, "over"))
	look, d := s.copy().take(0), large.take(0)
	if large.faults != s.faults+1 {
		t.Fatalf("a clock fault was counted %d times", large.faults-s.faults)
	}
	if limit.Algorithm == comporta.SlidingCounter {
		if large.kept.state.Cur != s.kept.state.Cur || large.kept.state.Prev != s.kept.state.Prev {
			t.Fatalf("a clock fault: the counts %+v became %+v", s.kept.state, large.kept.state)
		}
	} else if d.Remaining != look.Remaining {
		t.Fatalf("a clock fault: %d remaining became %d", look.Remaining, d.Remaining)
	}
	if large.take(0); large.faults != s.faults+1 {
		t.Fatal("time does not go on from the fault")
	}
}

func attemptsClose(t *rapid.T, limit comporta.Limit) {
	limit.Charge, limit.MaxWait = comporta.Attempts, 0
	s := newSubject(t, limit)
	before := s.copy()
	look := before.take(0)
	c := cost(t, s.rule.Full())
	d := s.take(c)
	switch {
	case d.Allowed || !s.counts():
	case c > s.rule.Full():
		if !s.same(before) {
			t.Fatalf("an attempt at the impossible was charged: %+v", s.kept)
		}
	case d.Remaining != 0 || d.FullAfter < look.FullAfter:
		t.Fatalf("an attempt leaves %+v of %+v", d, look)
	case s.kept.state.At < s.now:
		t.Fatalf("an attempt is no change: %+v", s.kept.state)
	}
}

// settled draws a subject and one of its takes, not settled yet.
func settled(t *rapid.T, limit comporta.Limit) (*subject, comporta.Receipt, bool) {
	s := newSubject(t, limit)
	s.take(0)
	if len(s.receipts) == 0 {
		return nil, comporta.Receipt{}, false
	}
	return s, rapid.SampledFrom(s.receipts).Draw(t, "settled"), true
}

func settlingAtCostChangesNothing(t *rapid.T, limit comporta.Limit) {
	s, taken, ok := settled(t, limit)
	if !ok {
		return
	}
	before := s.copy()
	look := before.take(0)
	if d := s.settle(taken, taken.Cost); d != look || !s.same(before) {
		t.Fatalf("%+v became %+v", look, d)
	}
}

func refundNeverPastFull(t *rapid.T, limit comporta.Limit) {
	s, taken, ok := settled(t, limit)
	if !ok || !s.counts() {
		return
	}
	look := s.copy().take(0)
	back := rapid.Int64Range(1, taken.Cost).Draw(t, "back")
	d := s.settle(taken, taken.Cost-back)
	if d.Remaining < look.Remaining || d.Remaining > d.Limit || d.FullAfter > look.FullAfter {
		t.Fatalf("a refund of %d: %+v became %+v", back, look, d)
	}
	// Of a fraction that is not shown, one unit more may come to light.
	if d.Remaining > look.Remaining+back+1 {
		t.Fatalf("a refund of %d gave %d", back, d.Remaining-look.Remaining)
	}
}

func debtHasAFloor(t *rapid.T, limit comporta.Limit) {
	s, taken, ok := settled(t, limit)
	if !ok || !s.counts() {
		return
	}
	before := s.copy()
	look := before.take(0)
	more := rapid.SampledFrom([]int64{1, s.rule.Full(), 2 * s.rule.Full(), comporta.MaxCost}).Draw(t, "more")
	d := s.settle(taken, min(taken.Cost+more, comporta.MaxCost))
	if d.Remaining > look.Remaining || d.FullAfter < look.FullAfter {
		t.Fatalf("a debt of %d: %+v became %+v", more, look, d)
	}
	if floor := max(2*s.rule.Full(), before.owed()); s.owed() > floor {
		t.Fatalf("a debt of %d: %d are owed, and the floor is %d", more, s.owed(), floor)
	}
	if limit.Algorithm.Bucket() && d.FullAfter > max(2*s.rule.FillTime(), look.FullAfter) {
		t.Fatalf("a debt of %d takes %v to pay", more, d.FullAfter)
	}
}

// owed is what is counted of the windows' and the log's budgets.
func (s *subject) owed() int64 {
	sum, _ := s.kept.entries.After(s.now.Add(-s.rule.Limit().Window))
	return max(s.kept.state.Cur, sum)
}

// changedNumbersKeepUsed raises or lowers a limit over the same window.
func changedNumbersKeepUsed(t *rapid.T, limit comporta.Limit) {
	s := newSubject(t, limit)
	if !s.counts() {
		return
	}
	look := s.take(0)
	limit.Limit = units(t, "changed limit")
	if limit.Burst > 0 {
		limit.Burst = units(t, "changed burst")
	}
	rule, err := limit.Compile()
	if err != nil || look.Remaining == 0 {
		return // out of range, or debts, which are cut
	}
	used := look.Limit - look.Remaining
	s.rule = rule
	d := s.take(0)
	want := max(0, rule.Full()-used)
	if limit.Algorithm == comporta.SlidingCounter && rule.Full() < look.Limit {
		// Each count is cut by itself, so less may be used of the smaller limit.
		if d.Remaining < want {
			t.Fatalf("%d used of %d, and %d remain of %d", used, look.Limit, d.Remaining, d.Limit)
		}
		return
	}
	if d.Limit != rule.Full() || d.Remaining != want {
		t.Fatalf("%d used of %d, and %d remain of %d", used, look.Limit, d.Remaining, d.Limit)
	}
	if again := s.take(0); again != d {
		t.Fatalf("changed twice: %+v, %+v", d, again)
	}
}

// allOrNothing asks several limits in one step, and each alone.
func allOrNothing(t *rapid.T, limit comporta.Limit) {
	subjects := []*subject{newSubject(t, limit)}
	for range rapid.IntRange(0, 3).Draw(t, "more limits") {
		subjects = append(subjects, newSubject(t, Limits().Draw(t, "limit")))
	}
	now := subjects[0].now
	takes, cells := make([]comporta.Take, len(subjects)), make([]comporta.Cell, len(subjects))
	passes := true
	for i, s := range subjects {
		s.now = now
		takes[i] = comporta.Take{Key: s.key, Rule: s.rule, Cost: cost(t, s.rule.Full()), Shadow: rapid.Bool().Draw(t, "shadow")}
		cells[i] = s.cell()
		passes = passes && (takes[i].Shadow || s.plain(takes[i].Shadow).copy().take(takes[i].Cost).Allowed)
	}
	out := make([]comporta.Taken, len(takes))
	comporta.AdvanceAll(takes, cells, now, out)
	if o := comporta.Resolve(takes, out); o.Allowed != passes || passes && o.RetryAfter != 0 || !passes && (o.Delay != 0 || o.RetryAfter <= 0) {
		t.Fatalf("allowed alone: %v, together: %+v", passes, o)
	}
	for i, s := range subjects {
		s.checkShare(t, &takes[i], &cells[i], out[i], passes)
	}
}

// plain is the subject under a rule that a shadow limit has: it is charged as
// admitted, since what would be denied is never charged.
func (s *subject) plain(shadow bool) *subject {
	o := s.copy()
	if l := s.rule.Limit(); shadow && l.Charge == comporta.Attempts {
		l.Charge = comporta.Admitted
		o.rule, _ = l.Compile()
	}
	return o
}

// checkShare holds one limit's part of a step to what it answers alone: the take,
// where the request passes, where it denies or where attempts are charged; else a peek.
func (s *subject) checkShare(t *rapid.T, take *comporta.Take, cell *comporta.Cell, got comporta.Taken, passes bool) {
	alone := s.plain(take.Shadow)
	want := alone.copy().take(take.Cost)
	asked := take.Cost
	if charged := s.rule.Limit().Charge == comporta.Attempts && !take.Shadow; !passes && want.Allowed && !charged {
		asked = 0
	}
	want = alone.take(asked)
	if !passes {
		want.Delay = 0
	}
	if got != want {
		t.Fatalf("%d units, passes %v, shadow %v:\n got %+v\nwant %+v", take.Cost, passes, take.Shadow, got, want)
	}
	if cell.Changed {
		s.kept.apply(cell)
	}
	s.rule = alone.rule
	if s.take(0) != alone.take(0) {
		t.Fatalf("%d units, passes %v, shadow %v: the state is %+v, want %+v", take.Cost, passes, take.Shadow, s.kept, alone.kept)
	}
}
