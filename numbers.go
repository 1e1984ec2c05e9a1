package comporta

// A store that runs the step in another language, such as a script in Redis, is
// given the numbers that it could not work out exactly: these.

// Ticks is p, the number of ticks in a microsecond: a bucket's count in lowest
// terms with its window. [State]'s Part is in ticks. It is 0 where the rule is no
// bucket or needs no state.
func (r *Rule) Ticks() int64 { return int64(r.p) }

// TimeFor is how long a bucket takes to fill by that many units, units·W / L, in
// whole microseconds and ticks. Past 2^53 − 1 µs, longer than any bucket's, it is that.
func (r *Rule) TimeFor(units int64) (us, ticks int64) {
	total := mul(uint64(units), r.q)
	if longest := mul(1<<53-1, r.p); !total.less(longest) {
		return 1<<53 - 1, 0
	}
	whole, part := total.div(r.p)
	return int64(whole), int64(part)
}

// Counting says whether the rule needs a state: not if it is unlimited or denies all.
func (r *Rule) Counting() bool { return r.counting }

// WindowOf is the window that now lies in, from start up to, not including, end,
// of a rule that counts in windows; phase is the key's ([Key.Phase]) where the
// rule is staggered.
func (r *Rule) WindowOf(now Instant, phase uint64) (start, end Instant) {
	w := r.windowAt(now, phase)
	return w.start, w.end
}

// Lease is how units may be taken ahead, its defaults written out; nil where they
// may not. It is not to be changed.
func (r *Rule) Lease() *Lease { return r.limit.Lease }
