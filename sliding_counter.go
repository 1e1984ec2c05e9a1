package comporta

// The sliding counter keeps two windows' counts and takes what the previous one
// held as spread evenly over it: used = prev·(W − e)/W + cur, e into the window.
// All it compares is whole, so used may be rounded up once and never again:
// used + c ≤ L is ⌈prev·(W − e)/W⌉ + cur + c ≤ L.

// counts are a key's counts in the window of now and the one before, and how far
// into it now is; a full key is forgotten.
func (r *Rule) counts(c *Cell, now Instant) (cur, prev, into int64) {
	s := &c.State
	w := r.windowAt(now, s.Phase)
	into = int64(now - w.start)
	switch {
	case s.Under == nil:
		return 0, 0, into
	case s.At >= w.start:
		cur, prev = s.Cur, s.Prev
	case s.At >= w.start-Instant(r.window):
		prev = s.Cur
	}
	if cur == 0 && prev == 0 {
		c.forget()
	}
	return cur, prev, into
}

// spread is used, rounded up.
func (r *Rule) spread(cur, prev, into int64) int64 {
	if prev == 0 {
		return cur
	}
	return rise(prev, r.window-into, r.window) + cur
}

// wait is the time until used ≤ u.
func (r *Rule) wait(u, cur, prev, into int64) int64 {
	w := r.window
	switch {
	case r.spread(cur, prev, into) <= u:
		return 0
	case cur <= u:
		return w - into - fall(u-cur, w, prev)
	default: // in the next window, cur becomes prev
		return w - into + w - fall(u, w, cur)
	}
}

func (r *Rule) counterTake(c *Cell, now Instant, cost int64, out *Taken, attempts bool) {
	cur, prev, into := r.counts(c, now)
	used := r.spread(cur, prev, into)
	out.Allowed = cost == 0 || used+cost <= r.full
	switch {
	case cost == 0:
	case out.Allowed:
		cur += cost
		r.count(c, now, cur, prev)
		out.Receipt = Receipt{At: now, Cost: cost}
	case attempts && cost <= r.full:
		cur = max(cur, min(r.full, cur+cost))
		r.count(c, now, cur, prev)
	}
	out.Limit = r.full
	used = r.spread(cur, prev, into)
	out.Remaining = max(0, r.full-used)
	if used > 0 {
		out.FullAfter = micros(r.wait(0, cur, prev, into))
		out.ResetAfter = micros(r.wait(r.full-out.Remaining-1, cur, prev, into))
	}
	switch {
	case cost > r.full:
		out.AskAgain = Never
	case attempts || !out.Allowed:
		out.AskAgain = micros(r.wait(r.full-cost, cur, prev, into))
	}
	out.tellRetry()
}

func (r *Rule) counterSettle(c *Cell, now Instant, taken Receipt, actual int64) {
	cur, prev, into := r.counts(c, now)
	if actual > taken.Cost {
		r.count(c, now, r.owe(cur, actual-taken.Cost), prev)
		return
	}
	if c.State.Under == nil {
		return
	}
	back := taken.Cost - actual
	switch start := now - Instant(into); {
	case taken.At >= start && taken.At < start+Instant(r.window):
		cur = max(0, cur-back)
	case taken.At < start && taken.At >= start-Instant(r.window):
		prev = max(0, prev-back)
	}
	r.count(c, now, cur, prev)
	if cur == 0 && prev == 0 {
		c.forget()
	}
}

func (r *Rule) counterConvert(c *Cell, old *Rule, now Instant) {
	cur, prev, into := old.counts(c, now)
	if c.State.Under == nil {
		return
	}
	if old.window != r.window {
		cur, prev = old.spread(cur, prev, into), 0
	}
	r.count(c, now, min(cur, r.full), min(prev, r.full))
}
