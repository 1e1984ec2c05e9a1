package comporta

import (
	"fmt"
	"math"
)

// Step is the decision as a pure function: state, instant and cost go in, the
// new state and a decision come out. A cost of 0 only looks. It is for every
// algorithm but the sliding log, whose entries a store keeps: those go through
// [Rule.Advance], of which this is one line. A cost outside 0 to 2^53 − 1 is
// the caller's error: check it with [CheckCost].
func (r *Rule) Step(s State, now Instant, cost int64) (State, Decision) {
	c := Cell{State: s}
	var d Taken
	r.Advance(&c, now, cost, &d)
	return c.State, d.Decision
}

// CheckCost is an error for a cost that is not decided.
func CheckCost(cost int64) error {
	if cost < 0 || cost > MaxCost {
		return fmt.Errorf("a cost of %d is out of range: from 0 to 2^53 − 1", cost)
	}
	return nil
}

// Advance is the step in place: it reads and changes the cell and fills in the
// decision. It neither allocates nor keeps anything. The cost is from 0 to 2^53 − 1.
func (r *Rule) Advance(c *Cell, now Instant, cost int64, d *Taken) {
	r.advance(c, now, cost, d, r.limit.Charge == Attempts)
}

// advance is Advance; attempts says whether a denied take is charged too.
func (r *Rule) advance(c *Cell, now Instant, cost int64, d *Taken, attempts bool) {
	*d = Taken{}
	attempts = attempts && cost > 0 // a peek is none: it is allowed, whatever is owed
	if !r.counting {
		c.forget()
		r.trivial(cost, d)
		return
	}
	now = r.arrive(c, now)
	switch r.limit.Algorithm {
	case TokenBucket, LeakyBucket:
		r.bucketTake(c, now, cost, d, attempts)
	case FixedWindow:
		r.fixedTake(c, now, cost, d, attempts)
	case SlidingCounter:
		r.counterTake(c, now, cost, d, attempts)
	case SlidingLog:
		r.logTake(c, now, cost, d, attempts)
	}
}

// Settle replaces the cost of an allowed take by its actual cost, once, in
// place: what was not used is given back, what was used beyond is charged as
// debt. The decision on a settle is that of a peek afterwards: apply the edit
// and [Rule.Advance] the cell with a cost of 0.
func (r *Rule) Settle(c *Cell, now Instant, taken Receipt, actual int64) {
	if !r.counting {
		c.forget()
		return
	}
	now = r.arrive(c, now)
	if actual == taken.Cost {
		return
	}
	switch r.limit.Algorithm {
	case TokenBucket, LeakyBucket:
		r.bucketSettle(c, now, taken, actual)
	case FixedWindow:
		r.fixedSettle(c, now, taken, actual)
	case SlidingCounter:
		r.counterSettle(c, now, taken, actual)
	case SlidingLog:
		r.logSettle(c, now, taken, actual)
	}
}

func (r *Rule) trivial(cost int64, d *Taken) {
	if r.limit.Unlimited {
		d.Allowed, d.Limit, d.Remaining = true, math.MaxInt64, math.MaxInt64
		return
	}
	if d.Allowed = cost == 0; !d.Allowed {
		d.RetryAfter, d.AskAgain = Never, Never
	}
}

// arrive brings a cell to the instant of a call and is that instant as it
// counts: never before the state's last change, unless the clock was at fault.
// It converts what was made under other numbers, and forgets what is full.
func (r *Rule) arrive(c *Cell, now Instant) Instant {
	s := &c.State
	if s.Under == nil {
		return now
	}
	if now < s.At {
		if now.Add(MaxStep) < s.At {
			s.Under.fault(c, now)
		} else {
			now = s.At
		}
	}
	if s.Under != r {
		if s.Under.Same(r) {
			s.Under = r
		} else {
			r.convert(c, now)
		}
	}
	return now
}

// fault lets time go on from an earlier instant: counts and levels stay as numbers.
func (r *Rule) fault(c *Cell, now Instant) {
	if r.limit.Algorithm == SlidingLog {
		c.Edit.Dropping, c.Edit.Drop = true, c.State.At-Instant(r.window)
		c.Edit.Clamping, c.Edit.Clamp = true, now
	}
	c.State.At = now
	c.Changed, c.Fault = true, true
}

// convert carries a state made under other numbers over to this rule: what is
// used stays. Under another algorithm the key starts anew.
func (r *Rule) convert(c *Cell, now Instant) {
	old := c.State.Under
	if old.limit.Algorithm != r.limit.Algorithm {
		c.forget()
		return
	}
	switch r.limit.Algorithm {
	case TokenBucket, LeakyBucket:
		r.bucketConvert(c, old, now)
	case FixedWindow:
		r.fixedConvert(c, old, now)
	case SlidingCounter:
		r.counterConvert(c, old, now)
	case SlidingLog:
		r.logConvert(c, old, now)
	}
}

// forget makes the key a new one.
func (c *Cell) forget() {
	if c.State.Under == nil {
		return
	}
	if c.State.Under.limit.Algorithm == SlidingLog {
		c.Edit = Edit{Dropping: true, Drop: math.MaxInt64}
		c.Log = nil
	}
	c.State = State{Phase: c.State.Phase}
	c.Changed = true
}
