package comporta

import "math"

// The sliding log remembers every allowed take for exactly W: never more than L
// in any W, at the price of memory that grows with the requests in a window.

// logView is a log as it is after the edit so far: a step may drop, cut and
// clamp before it decides, and the store applies all of it at once afterwards.
//
// It holds what it needs of the edit by value: a pointer to it beside the log
// would send every cell to the heap.
type logView struct {
	log   Log
	from  Instant // entries later than this are in the window
	sum   int64   // their cost, less what is cut
	last  Instant // the newest of them
	cut   int64   // units cut from the oldest
	clamp Instant // entries later than this count as at it
	added int64   // units of sum that are not in the log yet
}

func (r *Rule) logView(c *Cell, now Instant) logView {
	v := logView{log: c.Log, from: now - Instant(r.window), cut: c.Edit.Cut, clamp: math.MaxInt64}
	if c.Edit.Dropping {
		v.from = max(v.from, c.Edit.Drop)
	}
	if c.Log == nil || c.State.Under == nil {
		v.log = nil
		return v
	}
	v.sum, v.last = c.Log.After(v.from)
	v.sum -= v.cut
	if c.Edit.Clamping {
		v.clamp = c.Edit.Clamp
	}
	v.last = min(v.last, v.clamp)
	return v
}

// reach is the instant of the entry by which n units, oldest first, have left.
func (v *logView) reach(n int64) Instant {
	return min(v.log.Reach(v.from, v.cut+n), v.clamp)
}

// at is the cost that the window holds at instant t.
func (v *logView) at(t Instant) int64 {
	if v.log == nil {
		return 0
	}
	if t > v.clamp {
		return 0
	}
	if t == v.clamp {
		moved, _ := v.log.After(max(v.from, t-1))
		return min(moved, v.sum)
	}
	if t <= v.from {
		return 0
	}
	// What is cut is cut from the oldest: from here only once all before is gone.
	after, _ := v.log.After(t)
	return max(0, min(v.log.At(t), v.sum-after))
}

// logArrive is the view at now; a log with nothing in it is forgotten.
func (r *Rule) logArrive(c *Cell, now Instant) logView {
	v := r.logView(c, now)
	if v.sum <= 0 {
		c.forget()
		v.log, v.sum = nil, 0
		v.from = max(v.from, c.Edit.Drop)
	}
	return v
}

// record adds units at now and lets what has left leave.
func (r *Rule) record(c *Cell, v *logView, now Instant, units int64) {
	c.Edit.Dropping, c.Edit.Drop = true, v.from
	c.Edit.Add, c.Edit.AddAt = units, now
	v.added = units
	c.State.At, c.State.Under = now, r
	c.Changed = true
}

func (r *Rule) logTake(c *Cell, now Instant, cost int64, out *Taken, attempts bool) {
	v := r.logArrive(c, now)
	out.Allowed = cost == 0 || v.sum+cost <= r.full
	switch {
	case cost == 0:
	case out.Allowed:
		r.record(c, &v, now, cost)
		out.Receipt = Receipt{At: now, Cost: cost}
		v.sum += cost
		v.last = now
	case attempts && cost <= r.full:
		room := min(cost, v.sum+cost-r.full)
		c.Edit.Cut += room
		v.cut = c.Edit.Cut
		v.sum += cost - room
		v.last = now
		r.record(c, &v, now, cost)
	}
	r.logTell(&v, now, cost, out, attempts)
}

// logTell fills in the numbers from the view after the take, which may hold an
// entry at now that the log itself has not got yet.
func (r *Rule) logTell(v *logView, now Instant, cost int64, out *Taken, attempts bool) {
	left := func(units int64) (after int64) { // until so many units have left
		t := now
		if old := v.sum - v.added; units <= old {
			t = v.reach(units)
		}
		return int64(t-now) + r.window
	}
	out.Limit = r.full
	out.Remaining = max(0, r.full-v.sum)
	if v.sum > 0 {
		out.FullAfter = micros(int64(v.last-now) + r.window)
		out.ResetAfter = micros(left(v.sum - (r.full - out.Remaining - 1)))
	}
	switch over := v.sum + cost - r.full; {
	case cost > r.full:
		out.AskAgain = Never
	case over > 0 && (attempts || !out.Allowed):
		out.AskAgain = micros(left(over))
	}
	out.tellRetry()
}

func (r *Rule) logSettle(c *Cell, now Instant, taken Receipt, actual int64) {
	v := r.logArrive(c, now)
	if actual > taken.Cost {
		if debt := r.owe(v.sum, actual-taken.Cost) - v.sum; debt > 0 {
			r.record(c, &v, now, debt)
		} else {
			c.State.At, c.Changed = now, true
		}
		return
	}
	if c.State.Under == nil {
		return
	}
	c.State.At, c.Changed = now, true
	back := min(taken.Cost-actual, v.at(taken.At))
	if back == v.sum {
		c.forget()
		return
	}
	c.Edit.Dropping, c.Edit.Drop = true, v.from
	c.Edit.Back, c.Edit.BackAt = back, taken.At
}

func (r *Rule) logConvert(c *Cell, old *Rule, now Instant) {
	v := old.logArrive(c, now)
	if v.sum == 0 {
		return
	}
	// Those past the new window leave, and the oldest units over the new limit.
	c.Edit.Dropping, c.Edit.Drop = true, max(v.from, now-Instant(r.window))
	c.State.At, c.State.Under, c.Changed = now, r, true
	if v = r.logArrive(c, now); v.sum > r.full {
		c.Edit.Cut += v.sum - r.full
	}
}
