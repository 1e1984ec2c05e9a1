package policy

import (
	"context"
	"hash/maphash"
	"math"
	"math/bits"
	"time"

	"github.com/comporta/comporta"
)

// start brings a key's local budget down to what the store's last answer leaves,
// so that an outage is no new budget for who had used up the old one.
//
// Where that answer was given age ago, at most used units (see there) of the full
// budget F can still be used now, and an instance's local budget has at most
// (F − used) / instances left, rounded up. What it has beyond that is taken from
// it, in one take in nobody's name. So what was spent locally counts too, whether
// in this outage or in one before: the local store keeps it, and a store that
// comes and goes grants no more than one that is gone. As time passes the answer
// allows more in the same measure as the local budget fills again, so that
// nothing is taken twice.
//
// In a fixed window the answer is of the store's window. Where the local clock is
// ahead and has begun the next one, the answer says nothing about that and must
// not count in it: the two are told apart by their ends, half a window or more
// from each other.
func (f *fallback) start(ctx context.Context, key comporta.Key, rule *comporta.Rule, s *share, now comporta.Instant) {
	if f.store == nil {
		return
	}
	d, age, ok := f.store.Known(key)
	if !ok || rule.Algorithm() == comporta.FixedWindow && isOver(key, rule, d.FullAfter-age, now) {
		return
	}
	left := among(max(0, rule.Full()-used(rule, &d, age)), s.of)
	if left >= s.rule.Full() {
		return
	}
	lock := &f.starts[maphash.Comparable(f.seed, key)%uint64(len(f.starts))]
	lock.Lock()
	defer lock.Unlock()
	takes := []comporta.Take{{Key: key, Rule: s.quiet}}
	out := make([]comporta.Taken, 1)
	if err := f.local.Take(ctx, takes, out); err != nil || out[0].Remaining <= left {
		return
	}
	takes[0].Cost = out[0].Remaining - left
	_ = f.local.Take(ctx, takes, out) // where this fails, so does what comes after it
}

// isOver says whether a window that ends after rest by the store's clock is over
// by the local one.
func isOver(key comporta.Key, rule *comporta.Rule, rest time.Duration, now comporta.Instant) bool {
	var s comporta.State
	if rule.NeedsPhase(&s) {
		s.Phase = key.Phase()
	}
	_, d := rule.Step(s, now, 1)
	return d.FullAfter-rest >= rule.WindowAt(now)/2
}

// used is the most that can still be used of a rule's budget, by an answer that
// was given age ago, if nothing was taken since. A bucket empties by its rate:
// exact, with any debt. A sliding counter's windows fade evenly, the present one
// from its end on: at most what was used, times what is left of the last W until
// the budget is full. A fixed window and a log count as they were until they are
// full: of a log nobody knows which units leave first.
func used(rule *comporta.Rule, d *comporta.Decision, age time.Duration) int64 {
	rest := d.FullAfter - age
	if rest <= 0 {
		return 0
	}
	l := rule.Limit()
	taken := d.Limit - d.Remaining
	switch {
	case l.Algorithm.Bucket() && l.Limit > 0:
		return rise(int64(rest), l.Limit, int64(l.Window))
	case l.Algorithm == comporta.SlidingCounter:
		fades := min(l.Window, d.FullAfter)
		return rise(taken, int64(min(rest, fades)), int64(fades))
	}
	return taken
}

// rise is a·b / c rounded up, or the largest number there is. None is negative, c is not 0.
func rise(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return math.MaxInt64
	}
	n, rest := bits.Div64(high, low, uint64(c))
	if rest > 0 {
		n++
	}
	return int64(min(n, math.MaxInt64))
}
