package sim

import (
	"time"

	"github.com/comporta/comporta"
)

// oracle sees all that happens at once, and judges it.
type oracle struct {
	rule    *comporta.Rule
	window  comporta.Instant
	bound   int64 // in a window of any place
	aligned int64 // in one counted from the epoch
	seen    map[int]*seen

	ideal, early      int64
	over, overAligned int64
	mostLying         int64
}

// seen is what became of one key.
type seen struct {
	ideal key     // one limiter that gets all requests at once
	truth key     // the rule charged with what went on, and nothing else
	uses  history // within the last window
	lying int64   // units ahead, at this moment

	number  comporta.Instant // of the present window
	current int64            // what went on in it

	// level is that of a bucket that never refuses, in units times the window in
	// microseconds; its excess over the burst is that over the worst window of any length.
	level int64
	last  comporta.Instant
}

func newOracle(rule *comporta.Rule) oracle {
	limit := rule.Limit()
	o := oracle{rule: rule, window: comporta.Instant(limit.Window / time.Microsecond), bound: rule.Bound(limit.Window), seen: map[int]*seen{}}
	o.aligned = o.bound
	if !limit.Algorithm.Bucket() {
		o.aligned = rule.Full()
	}
	return o
}

func (o *oracle) of(key int) *seen {
	s := o.seen[key]
	if s == nil {
		s = &seen{}
		o.seen[key] = s
	}
	return s
}

// arrive is a request, as one ideal limiter sees it.
func (o *oracle) arrive(key int, now comporta.Instant) {
	if o.of(key).ideal.take(o.rule, now, 1).Allowed {
		o.ideal++
	}
}

// use is a request that went on.
func (o *oracle) use(key int, now comporta.Instant) {
	s := o.of(key)
	if !s.truth.take(o.rule, now, 1).Allowed {
		s.truth.settle(o.rule, now, comporta.Receipt{At: now}, 1) // it went on all the same: a debt
	}
	if number := now / o.window; number != s.number {
		s.number, s.current = number, 0
	}
	s.current++
	o.overAligned = max(o.overAligned, s.current-o.aligned)
	if o.rule.Algorithm() == comporta.TokenBucket {
		window, limit := int64(o.window), o.rule.Limit().Limit
		s.level = max(0, s.level-int64(now-s.last)*limit) + window
		s.last = now
		o.over = max(o.over, (s.level-o.rule.Full()*window+window-1)/window)
		return
	}
	o.over = max(o.over, s.uses.add(now, now-o.window)-o.bound)
}

// refuse is a request that did not.
func (o *oracle) refuse(key int, now comporta.Instant) {
	if o.of(key).truth.take(o.rule, now, 0).Remaining > 0 {
		o.early++
	}
}

// lie is that so many units more, or fewer, lie in leases.
func (o *oracle) lie(key int, units int64) {
	s := o.of(key)
	s.lying += units
	o.mostLying = max(o.mostLying, s.lying)
}

// history are instants in their order, of which old ones leave.
type history struct {
	at   []comporta.Instant
	from int
}

// add is how many are later than an instant, with the new one.
func (h *history) add(now, after comporta.Instant) int64 {
	h.at = append(h.at, now)
	for h.at[h.from] <= after {
		h.from++
	}
	if h.from > len(h.at)/2 {
		h.at = append(h.at[:0], h.at[h.from:]...)
		h.from = 0
	}
	return int64(len(h.at) - h.from)
}
