package comporta

// The token bucket and the leaky bucket are one arithmetic seen from two sides:
// both keep the time until the budget is full, D = (B − tokens)·W / L = level·W / L,
// which falls by one microsecond each microsecond. As D is kept in whole
// microseconds and a rest in ticks of 1/p µs, refilling is one subtraction and
// nothing is ever rounded. (The generic cell rate algorithm, ITU-T I.371, keeps
// the same number as a theoretical arrival time.)
//
// They differ in who waits: a token bucket lets a burst through at once, a leaky
// bucket delays each until what is before it has left.

// level is how much of the bucket is used at now, in ticks; one that is full
// again is forgotten.
func (r *Rule) level(c *Cell, now Instant) wide {
	s := &c.State
	if s.Under == nil {
		return wide{}
	}
	left := s.Full - int64(now-s.At)
	if left < 0 || left == 0 && s.Part == 0 {
		c.forget()
		return wide{}
	}
	return mul(uint64(left), r.p).add(wide{lo: uint64(s.Part)})
}

// fill makes D the state's, at now.
func (r *Rule) fill(s *State, now Instant, d wide) {
	whole, part := d.div(r.p)
	s.Full, s.Part = int64(whole), int64(part)
	s.At, s.Under = now, r
}

// join makes the last place in a leaky bucket's queue a new one: its instant, or
// the next that is free. A queue that was empty begins anew.
func (s *State) join(now Instant) {
	if s.Under != nil {
		now = max(now, s.Place+1)
	}
	s.Place = now
}

func (r *Rule) bucketTake(c *Cell, now Instant, cost int64, out *Taken, attempts bool) {
	level := r.level(c, now)
	s := &c.State
	retry := r.overflow(level, cost)
	out.Allowed = cost == 0 || retry <= r.maxWait

	switch {
	case cost == 0:
	case out.Allowed:
		if r.limit.Algorithm == LeakyBucket {
			out.Delay = micros(level.up(r.p))
			s.join(now)
		} else {
			out.Delay = micros(retry)
		}
		level = level.add(mul(uint64(cost), r.q))
		r.fill(s, now, level)
		c.Changed = true
		out.Receipt = Receipt{At: now, Cost: cost, Place: s.Place}
	case attempts && cost <= r.full:
		if level.less(r.capacity) {
			level = r.capacity
		}
		if r.limit.Algorithm == LeakyBucket {
			s.join(now)
		}
		r.fill(s, now, level)
		c.Changed = true
	}
	r.bucketTell(level, cost, out, attempts)
}

// never is a wait that does not end, in microseconds: over any real one.
const never = int64(Never)

// overflow is how long, rounded up, until cost more fits a bucket of that level.
func (r *Rule) overflow(level wide, cost int64) int64 {
	if cost > r.full {
		return never
	}
	need := level.add(mul(uint64(cost), r.q))
	if !r.capacity.less(need) {
		return 0
	}
	return need.sub(r.capacity).up(r.p)
}

// bucketTell fills in the numbers of a decision from the level after it.
func (r *Rule) bucketTell(level wide, cost int64, out *Taken, attempts bool) {
	out.Limit = r.full
	if level.less(r.capacity) {
		out.Remaining = r.capacity.sub(level).down(r.q)
	}
	if !level.zero() {
		out.FullAfter = micros(level.up(r.p))
		grown := mul(uint64(r.full-out.Remaining-1), r.q)
		out.ResetAfter = micros(level.sub(grown).up(r.p))
	}
	if out.Allowed && !attempts {
		return
	}
	if wait := r.overflow(level, cost); wait == never {
		out.AskAgain = Never
	} else {
		out.AskAgain = micros(max(0, wait-r.maxWait))
	}
	out.tellRetry()
}

func (r *Rule) bucketSettle(c *Cell, now Instant, taken Receipt, actual int64) {
	level := r.level(c, now)
	s := &c.State
	if actual < taken.Cost {
		if s.Under == nil {
			return
		}
		back := mul(uint64(taken.Cost-actual), r.q)
		if r.limit.Algorithm == LeakyBucket && taken.Place != s.Place {
			back = wide{} // others stand behind it: a place cannot be given back under them
		}
		if !back.less(level) {
			c.forget()
			return
		}
		r.fill(s, now, level.sub(back))
		c.Changed = true
		return
	}
	debt := r.deepest
	if more := actual - taken.Cost; more < 2*r.full { // else it is at the bottom anyway
		if sum := level.add(mul(uint64(more), r.q)); sum.less(debt) {
			debt = sum
		}
	}
	if debt.less(level) {
		debt = level // a deeper debt is left as it is
	}
	if r.limit.Algorithm == LeakyBucket {
		s.join(now)
	}
	r.fill(s, now, debt)
	c.Changed = true
}

func (r *Rule) bucketConvert(c *Cell, old *Rule, now Instant) {
	level := old.level(c, now)
	s := &c.State
	if s.Under == nil {
		return
	}
	used := min(level.up(old.q), r.full) // in units, rounded up
	r.fill(s, now, mul(uint64(used), r.q))
	c.Changed = true
}
