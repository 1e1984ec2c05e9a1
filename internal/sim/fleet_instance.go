package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/comporta/comporta"
)

// An instance decides on requests: from what it holds ahead, else by a call.
type instance struct {
	*fleet
	number int
	alive  bool
	skew   comporta.Instant // of its clock at the start
	drift  int64            // in parts per million
	keys   map[int]*holding

	fails int  // calls in a row that got no reply
	open  bool // the breaker: nothing is asked
	live  int  // instances, as last known
}

// holding is what an instance has of one key.
type holding struct {
	batches     []*batch         // the oldest first
	left        int64            // in all of them
	most        int64            // that were left when the store last answered
	again       comporta.Instant // no wish for more before
	asking      bool             // one wish is out at a time
	wish        int              // the number of the last
	waiting     int64            // requests, for the reply
	deniedUntil comporta.Instant

	seen  int64            // requests since the rate was measured
	since comporta.Instant // when that was
	rate  float64          // requests in a microsecond

	known      int64 // what remained when the store last answered
	knownFresh bool  // since the last local decision
	local      key
}

// batch is one lease.
type batch struct {
	receipt comporta.Receipt
	left    int64
	ends    comporta.Instant // by the instance's clock
	// stillborn: it had ended before the reply came, and never was of use.
	stillborn bool
}

// newInstance has its clocks from a chance of their own, so that other clocks
// leave all else as it is.
func (f *fleet) newInstance(number int) *instance {
	chance := rand.New(rand.NewPCG(f.Seed, uint64(number)+1))
	i := &instance{fleet: f, number: number, alive: true, keys: map[int]*holding{}, live: f.Instances}
	if f.Skew > 0 {
		i.skew = instant(time.Duration(chance.Int64N(2*int64(f.Skew)+1)) - f.Skew)
	}
	if f.Drift > 0 {
		i.drift = chance.Int64N(2*f.Drift+1) - f.Drift
	}
	return i
}

// clock is the instance's own: wrong from the start, and fast or slow.
func (i *instance) clock() comporta.Instant {
	return i.skew + i.now*comporta.Instant(1_000_000+i.drift)/1_000_000
}

// when is the instant at which the instance's clock shows a time.
func (i *instance) when(local comporta.Instant) comporta.Instant {
	d := 1_000_000 + comporta.Instant(i.drift)
	return ((local-i.skew)*1_000_000 + d - 1) / d
}

// guarded is a life made shorter by a thousandth, so that a clock that is slow by
// as much does not make it longer.
func guarded(life comporta.Instant) comporta.Instant { return life - (life+999)/1000 }

func (i *instance) holding(key int) *holding {
	h := i.keys[key]
	if h == nil {
		now := i.clock()
		h = &holding{since: now, deniedUntil: now, again: now}
		i.keys[key] = h
	}
	return h
}

// request is one that arrives.
func (i *instance) request(key int) {
	h := i.holding(key)
	h.seen++
	switch {
	case i.useOne(key, h):
		i.refill(key, h)
	case i.clock() < h.deniedUntil:
		i.oracle.refuse(key, i.now)
	case i.open:
		i.alone(key, h)
	default:
		h.waiting++
		i.ask(key, h)
	}
}

// useOne lets a request go on with a unit held ahead, if there is one.
func (i *instance) useOne(key int, h *holding) bool {
	for _, b := range h.batches {
		if b.left > 0 && i.clock() < b.ends {
			b.left--
			h.left--
			i.oracle.lie(key, -1)
			i.goOn(key, 1)
			return true
		}
	}
	return false
}

func (i *instance) goOn(key int, units int64) {
	i.Admitted += units
	for range units {
		i.oracle.use(key, i.now)
	}
}

// target is how many units to hold ahead: what is used in half a lease's life.
// Fewer than 2 are not worth a lease.
func (i *instance) target(h *holding) int64 {
	if i.store.terms == nil {
		return 0
	}
	n := i.store.terms.Size
	if n == 0 {
		n = int64(h.rate * float64(instant(i.store.terms.TTL)) / 2)
	}
	if n < 2 {
		return 0
	}
	return n
}

// refill asks for more once half is used, and not soon again where the store had
// nothing to give.
func (i *instance) refill(key int, h *holding) {
	if 2*h.left <= h.most && i.target(h) > h.left && i.clock() >= h.again && !i.open {
		i.ask(key, h)
	}
}

// ask sends a wish, unless one is out already.
func (i *instance) ask(key int, h *holding) {
	if h.asking {
		return
	}
	i.measure(h)
	h.asking = true
	h.wish++
	w := wish{instance: i.number, key: key, number: h.wish, waiting: h.waiting, held: h.left, ahead: max(0, i.target(h)-h.left)}
	h.waiting = 0
	i.Calls++
	sent, deadline := i.clock(), i.now+instant(i.Timeout)
	arrives := i.now + i.trip()
	gone, overdue := !i.reachable(i.now) || !i.reachable(arrives), arrives >= deadline
	if gone || overdue {
		i.at(deadline, func() { i.unheard(key, h, w) })
	}
	if gone {
		return
	}
	i.at(arrives, func() {
		g := i.store.ask(w, i.now)
		replied := i.now + i.trip()
		if overdue || replied >= deadline || !i.reachable(replied) {
			i.Lost += g.allowed + g.ahead.Cost
			if !overdue {
				i.at(deadline, func() { i.unheard(key, h, w) })
			}
			return
		}
		// Those that waited count as decided here and now, as without leases.
		i.goOn(key, g.allowed)
		for range w.waiting - g.allowed {
			i.oracle.refuse(key, i.now)
		}
		b := &batch{receipt: g.ahead, left: g.ahead.Cost, ends: sent + guarded(g.life)}
		if i.when(b.ends) <= replied {
			b.stillborn = true
		} else {
			i.oracle.lie(key, b.left)
		}
		i.Leased += b.left
		i.at(replied, func() { i.heard(key, h, w, g, b, sent) })
	})
}

// measure is the rate of requests, smoothed by half, once a tenth of a lease has passed.
func (i *instance) measure(h *holding) {
	if i.store.terms == nil {
		return
	}
	now := i.clock()
	if past := now - h.since; past >= instant(i.store.terms.TTL)/10 {
		h.rate = (h.rate + float64(h.seen)/float64(past)) / 2
		h.seen, h.since = 0, now
	}
}

// heard is the reply to a wish.
func (i *instance) heard(key int, h *holding, w wish, g grant, b *batch, sent comporta.Instant) {
	if !i.alive {
		i.lose(key, b)
		return
	}
	h.asking, i.fails, i.live = false, 0, i.fleet.alive
	h.known, h.knownFresh = g.decided.Remaining, true
	if b.left > 0 {
		h.batches = append(h.batches, b)
		h.left += b.left
		i.at(i.when(b.ends), func() { i.end(key, h, b) })
	}
	h.most = h.left
	if w.ahead > 0 && b.left == 0 {
		h.again = i.clock() + instant(i.store.terms.TTL)/10
	}
	if g.allowed < w.waiting {
		h.deniedUntil = sent + min(instant(g.decided.RetryAfter), instant(rememberFor))
	}
	for h.waiting > 0 && i.useOne(key, h) {
		h.waiting--
	}
	switch {
	case h.waiting == 0:
		if g.ahead.Cost > 0 {
			i.refill(key, h)
		}
	case i.clock() < h.deniedUntil:
		i.refuseWaiting(key, h)
	default:
		i.ask(key, h)
	}
}

func (i *instance) refuseWaiting(key int, h *holding) {
	for ; h.waiting > 0; h.waiting-- {
		i.oracle.refuse(key, i.now)
	}
}

// end gives back what a lease has left.
func (i *instance) end(key int, h *holding, b *batch) {
	if !i.alive {
		return
	}
	if at := slices.Index(h.batches, b); at >= 0 {
		h.batches = slices.Delete(h.batches, at, at+1)
	}
	if b.left == 0 {
		return
	}
	h.left -= b.left
	b.leave(i, key)
	arrives := i.now + i.trip()
	if !i.open {
		i.Calls++
	}
	if i.open || !i.reachable(i.now) || !i.reachable(arrives) {
		i.Lost += b.left
		return
	}
	i.Returned += b.left
	i.at(arrives, func() { i.store.giveBack(key, b.receipt, b.left, i.now) })
}

// unheard is a call whose deadline has passed. A reply that comes later is dropped.
func (i *instance) unheard(key int, h *holding, w wish) {
	if !i.alive {
		return
	}
	h.asking = false
	if i.fails++; i.fails >= breakerFails && !i.open {
		i.open = true
		i.at(i.now+instant(probeEvery), i.probe)
	}
	h.waiting += w.waiting
	for ; h.waiting > 0; h.waiting-- {
		i.alone(key, h)
	}
}

// probe asks whether the store is there again.
func (i *instance) probe() {
	i.Calls++
	if !i.reachable(i.now) || !i.reachable(i.now+2*i.trip()) {
		i.at(i.now+instant(probeEvery), i.probe)
		return
	}
	i.open, i.fails = false, 0
}

// alone decides on one request without the store.
func (i *instance) alone(key int, h *holding) {
	allowed := i.OnError == Allow
	if i.OnError == Local {
		rule := i.local(i.live)
		if h.knownFresh { // starts from what was last known, and never fuller than it is
			part := (h.known + int64(i.live) - 1) / int64(i.live)
			if has := h.local.take(rule, i.now, 0).Remaining; has > part {
				h.local.take(rule, i.now, has-part)
			}
			h.knownFresh = false
		}
		allowed = h.local.take(rule, i.now, 1).Allowed
	}
	if !allowed {
		i.oracle.refuse(key, i.now)
		return
	}
	i.Locally++
	i.goOn(key, 1)
}

// die loses what the instance holds. Requests that wait are answered by nobody.
func (i *instance) die() {
	i.alive = false
	for key, h := range i.keys {
		for _, b := range h.batches {
			i.lose(key, b)
		}
		i.refuseWaiting(key, h)
	}
}

// lose is what becomes of a lease whose instance is no more.
func (i *instance) lose(key int, b *batch) {
	i.Lost += b.left
	b.leave(i, key)
}

// leave tells the oracle that what is left does not lie there any more.
func (b *batch) leave(i *instance, key int) {
	if !b.stillborn {
		i.oracle.lie(key, -b.left)
	}
}
