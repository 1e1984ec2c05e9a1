package comporta

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// A Rule is a compiled limit: valid because it exists. What it says is immutable,
// and it is safe for concurrent use. Rules of equal numbers are the same rule to a state.
type Rule struct {
	limit  Limit
	full   int64 // what a full budget holds: L for windows, B for buckets
	window int64 // W in microseconds; 0 for a quota

	counting bool // 0 per anything and unlimited need no state

	// The buckets count in ticks of 1/p µs, where L/W is p/q in lowest terms: one
	// unit is q ticks, one microsecond p of them.
	p, q     uint64
	capacity wide // B·q: a full bucket, in ticks
	deepest  wide // 2·capacity: one full budget below empty
	maxWait  int64

	// span is the calendar period that was asked for last: a cache of a pure function.
	span atomic.Pointer[span]

	succession atomic.Pointer[succession] // nil where no rule follows or was followed
}

func newRule(l Limit) *Rule {
	r := &Rule{limit: l, full: l.Limit, window: int64(l.Window / time.Microsecond), maxWait: int64(l.MaxWait / time.Microsecond)}
	if l.Calendar != nil {
		own := *l.Calendar // the caller may go on changing its copy
		r.limit.Calendar = &own
	}
	if l.Lease != nil {
		own := l.Lease.Filled()
		r.limit.Lease = &own
	}
	if l.Unlimited {
		r.full = math.MaxInt64
	}
	if l.Algorithm.Bucket() && l.Limit > 0 {
		r.full = l.burst()
		g := gcd(uint64(l.Limit), uint64(r.window))
		r.p, r.q = uint64(l.Limit)/g, uint64(r.window)/g
		r.capacity = mul(uint64(r.full), r.q)
		r.deepest = r.capacity.add(r.capacity)
	}
	r.counting = r.full > 0 && !l.Unlimited
	return r
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Limit is what the rule was compiled from.
func (r *Rule) Limit() Limit { return r.limit }

// Algorithm is how the rule decides.
func (r *Rule) Algorithm() Algorithm { return r.limit.Algorithm }

// Full is what a full budget holds: L for windows, B for buckets.
func (r *Rule) Full() int64 { return r.full }

// FillTime is the longest time that an empty budget, without debt, takes to be
// full again: B·W / L for buckets rounded up, W for windows (twice W for the
// sliding counter, which looks back one window), the longest period for a quota.
func (r *Rule) FillTime() time.Duration {
	switch {
	case !r.counting:
		return 0
	case r.limit.Algorithm.Bucket():
		return micros(r.capacity.up(r.p))
	case r.limit.Calendar != nil:
		return r.limit.Calendar.Period.longest()
	case r.limit.Algorithm == SlidingCounter:
		return micros(2 * r.window)
	}
	return micros(r.window)
}

// WindowAt is the length of the limit's window at an instant, as headers name
// it: W, a quota's present period, B·W / L rounded up for a bucket; 0 where
// there is none to name (0/s, unlimited).
func (r *Rule) WindowAt(now Instant) time.Duration {
	switch {
	case !r.counting:
		return 0
	case r.limit.Algorithm.Bucket():
		return micros(r.capacity.up(r.p))
	case r.limit.Calendar != nil:
		s := r.period(now)
		return micros(int64(s.end - s.start))
	}
	return micros(r.window)
}

// SpreadAfter is the reset that headers tell for a decision of this rule: its
// reset_after, and for a bucket with something remaining the longer of that and
// remaining·W / L, so that whoever spreads what remains over it keeps the rate.
// On a denial it is never after RetryAfter.
func (r *Rule) SpreadAfter(d *Decision) time.Duration {
	reset := d.ResetAfter
	if r.p > 0 && d.Remaining > 0 {
		reset = max(reset, micros(mul(uint64(d.Remaining), r.q).up(r.p)))
	}
	if !d.Allowed {
		reset = min(reset, d.RetryAfter)
	}
	return reset
}

// NeedsPhase says whether a step of this rule on s needs the key's [Key.Phase]:
// only where stagger plays a part.
func (r *Rule) NeedsPhase(s *State) bool {
	return r.limit.Stagger || s.Under != nil && s.Under.limit.Stagger
}

// Same says whether two rules have the same numbers, so that a state of one is
// a state of the other. Max_wait, charge, lease and name are not among the numbers.
func (r *Rule) Same(o *Rule) bool {
	return r == o || r.limit.Algorithm == o.limit.Algorithm && r.limit.Unlimited == o.limit.Unlimited &&
		r.limit.Limit == o.limit.Limit && r.window == o.window && r.full == o.full &&
		r.limit.Stagger == o.limit.Stagger && r.limit.Calendar.same(o.limit.Calendar)
}

// rise is a·b / c rounded up; small products, nearly all of them, take the short way.
func rise(a, b, c int64) int64 {
	if bits.Len64(uint64(a))+bits.Len64(uint64(b)) < 63 {
		return (a*b + c - 1) / c
	}
	return mul(uint64(a), uint64(b)).up(uint64(c))
}

// fall is a·b / c rounded down.
func fall(a, b, c int64) int64 {
	return mul(uint64(a), uint64(b)).down(uint64(c))
}
