package comporta

// The fixed window counts what is allowed in window k, floor(now / W), and
// starts again at 0 in the next. Around a boundary nearly 2·L may pass in one W:
// the known flaw, kept on purpose.

// A span is one window: from start up to, not including, end.
type span struct{ start, end Instant }

// windowAt is the window of a staggered or calendar or plain limit that t lies in.
func (r *Rule) windowAt(t Instant, phase uint64) span {
	if r.limit.Calendar != nil {
		return r.period(t)
	}
	var offset int64
	if r.limit.Stagger {
		offset = int64(phase % uint64(r.window))
	}
	into := (int64(t) + offset) % r.window
	if into < 0 {
		into += r.window
	}
	start := t - Instant(into)
	return span{start, start + Instant(r.window)}
}

// period is the calendar period of t. The last one asked for is remembered:
// nearly every call falls into it, and calendars are slow.
func (r *Rule) period(t Instant) span {
	if s := r.span.Load(); s != nil && s.start <= t && t < s.end {
		return *s
	}
	s := r.limit.Calendar.period(t)
	r.span.Store(&s)
	return s
}

// fixedRoll brings a cell to the window w of now, and forgets a full one.
func (r *Rule) fixedRoll(c *Cell, w span) {
	if c.State.Under != nil && (c.State.At < w.start || c.State.Cur == 0) {
		c.forget()
	}
}

func (r *Rule) fixedTake(c *Cell, now Instant, cost int64, out *Taken, attempts bool) {
	w := r.windowAt(now, c.State.Phase)
	r.fixedRoll(c, w)
	s := &c.State
	n := s.Cur
	out.Allowed = cost == 0 || n+cost <= r.full
	switch {
	case cost == 0:
	case out.Allowed:
		n += cost
		r.count(c, now, n, s.Prev)
		out.Receipt = Receipt{At: now, Cost: cost}
	case attempts && cost <= r.full:
		n = max(n, r.full)
		r.count(c, now, n, s.Prev)
	}
	toEnd := micros(int64(w.end - now))
	out.Limit = r.full
	out.Remaining = max(0, r.full-n)
	if n > 0 {
		out.ResetAfter, out.FullAfter = toEnd, toEnd
	}
	switch {
	case cost > r.full:
		out.AskAgain = Never
	case n+cost > r.full && (attempts || !out.Allowed):
		out.AskAgain = toEnd
	}
	out.tellRetry()
}

// count makes cur and prev the state's, at now.
func (r *Rule) count(c *Cell, now Instant, cur, prev int64) {
	s := &c.State
	s.Cur, s.Prev, s.At, s.Under = cur, prev, now, r
	c.Changed = true
}

// owe is n with more charged without asking: down to one full budget below
// empty, and a deeper debt is left as it is.
func (r *Rule) owe(n, more int64) int64 {
	if more > 2*r.full-n {
		return max(n, 2*r.full)
	}
	return n + more
}

func (r *Rule) fixedSettle(c *Cell, now Instant, taken Receipt, actual int64) {
	w := r.windowAt(now, c.State.Phase)
	r.fixedRoll(c, w)
	s := &c.State
	if actual > taken.Cost {
		r.count(c, now, r.owe(s.Cur, actual-taken.Cost), 0)
		return
	}
	if s.Under == nil {
		return
	}
	n := s.Cur
	if w.start <= taken.At && taken.At < w.end {
		n = max(0, n-(taken.Cost-actual))
	}
	r.count(c, now, n, 0)
	if n == 0 {
		c.forget()
	}
}

func (r *Rule) fixedConvert(c *Cell, old *Rule, now Instant) {
	old.fixedRoll(c, old.windowAt(now, c.State.Phase))
	if c.State.Under != nil {
		r.count(c, now, min(c.State.Cur, r.full), 0)
	}
}
