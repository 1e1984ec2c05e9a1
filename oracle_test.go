package comporta_test

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"sort"

	"github.com/comporta/comporta"
)

// An oracle is one key under one limit in rational arithmetic, written from the
// specification's words and apart from the code that it is held against. It knows
// of each algorithm only how much is used at an instant, now or later; every
// duration is searched for as the first microsecond at which it holds.
type oracle struct {
	key   comporta.Key
	limit comporta.Limit // whose numbers the state carries
	known bool           // else a key never seen
	at    int64          // of the last change

	level     *big.Rat     // the buckets': what is used at that instant
	cur, prev int64        // the windows'
	log       []loggedUnit // the sliding log's, oldest first
	queue     int          // how many joined the queue so far, ever
	last      int          // the place of the last
	lives     int          // how often it was forgotten
}

type loggedUnit struct{ at, cost int64 }

// A ticket is what a settle names.
type ticket struct {
	at, cost int64
	place    int
	life     int
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func fullOf(l comporta.Limit) int64 {
	if l.Burst > 0 {
		return l.Burst
	}
	return l.Limit
}

func floorOf(r *big.Rat) int64 {
	return new(big.Int).Div(r.Num(), r.Denom()).Int64() // Euclid's: down, for what is over 0 below
}

func ceilOf(r *big.Rat) int64 { return -floorOf(new(big.Rat).Neg(r)) }

// pace is what n units take at the limit's rate, in microseconds.
func pace(l comporta.Limit, n *big.Rat) *big.Rat {
	return new(big.Rat).Mul(n, big.NewRat(l.Window.Microseconds(), l.Limit))
}

// window is the number of the window that t lies in, and how far into it t is.
func (o *oracle) window(l comporta.Limit, t int64) (k, into int64) {
	w := l.Window.Microseconds()
	if l.Stagger {
		sum := sha256.Sum256([]byte(o.key.Limit + "\x00" + o.key.Identity))
		t += int64(binary.BigEndian.Uint64(sum[:8]) % uint64(w))
	}
	return t / w, t % w
}

// used is what is used at t, which is not before the last change.
func (o *oracle) used(t int64) *big.Rat {
	w := o.limit.Window.Microseconds()
	if !o.known {
		return rat(0)
	}
	switch o.limit.Algorithm {
	case comporta.FixedWindow:
		then, _ := o.window(o.limit, o.at)
		if now, _ := o.window(o.limit, t); now != then {
			return rat(0)
		}
		return rat(o.cur)
	case comporta.SlidingCounter:
		cur, prev := o.counts(t)
		_, e := o.window(o.limit, t)
		spread := new(big.Rat).Mul(rat(prev), big.NewRat(w-e, w))
		return spread.Add(spread, rat(cur))
	case comporta.SlidingLog:
		var sum int64
		for _, unit := range o.log {
			if unit.at > t-w {
				sum += unit.cost
			}
		}
		return rat(sum)
	default:
		gone := new(big.Rat).Mul(rat(t-o.at), big.NewRat(o.limit.Limit, w))
		if gone.Cmp(o.level) >= 0 {
			return rat(0)
		}
		return gone.Sub(o.level, gone)
	}
}

// counts are a sliding counter's two at t.
func (o *oracle) counts(t int64) (cur, prev int64) {
	then, _ := o.window(o.limit, o.at)
	now, _ := o.window(o.limit, t)
	switch now - then {
	case 0:
		return o.cur, o.prev
	case 1:
		return 0, o.cur
	}
	return 0, 0
}

// bring carries the state on to t.
func (o *oracle) bring(t int64) {
	switch o.limit.Algorithm {
	case comporta.SlidingCounter:
		o.cur, o.prev = o.counts(t)
	case comporta.SlidingLog:
		var stay []loggedUnit
		for _, unit := range o.log {
			if unit.at > t-o.limit.Window.Microseconds() {
				stay = append(stay, unit)
			}
		}
		o.log = stay
	case comporta.TokenBucket, comporta.LeakyBucket:
		o.level = o.used(t)
	}
	o.at = t
}

// forget makes it a new key; the places in the queue are never given again.
func (o *oracle) forget() {
	*o = oracle{key: o.key, limit: o.limit, level: rat(0), queue: o.queue, lives: o.lives + 1}
}

// arrive is the instant of a call under l as it counts.
func (o *oracle) arrive(l comporta.Limit, now int64) int64 {
	if o.known && now < o.at {
		if o.at-now > 10_000_000 {
			o.bring(o.at)
			for i := range o.log {
				o.log[i].at = min(o.log[i].at, now)
			}
			o.at = now
		} else {
			now = o.at
		}
	}
	if o.known && o.used(now).Sign() == 0 {
		o.forget()
	}
	if o.known && numbers(o.limit) != numbers(l) {
		o.change(l, now)
	}
	o.limit = l
	if o.known && o.used(now).Sign() == 0 {
		o.forget()
	}
	return now
}

// numbers are what a state is made under.
func numbers(l comporta.Limit) comporta.Limit {
	return comporta.Limit{Algorithm: l.Algorithm, Limit: l.Limit, Window: l.Window, Burst: fullOf(l), Stagger: l.Stagger}
}

// change carries the state over to other numbers: what is used stays.
func (o *oracle) change(l comporta.Limit, now int64) {
	if l.Algorithm != o.limit.Algorithm || l.Limit == 0 {
		o.forget()
		return
	}
	used := o.used(now)
	o.bring(now)
	old := o.limit
	o.limit = l
	full := fullOf(l)
	switch l.Algorithm {
	case comporta.FixedWindow:
		o.cur = min(o.cur, full)
	case comporta.SlidingCounter:
		if old.Window != l.Window {
			o.cur, o.prev = ceilOf(used), 0
		}
		o.cur, o.prev = min(o.cur, full), min(o.prev, full)
	case comporta.SlidingLog:
		o.bring(now)
		o.cut(floorOf(o.used(now)) - full)
	default:
		o.level = rat(min(ceilOf(used), full))
	}
}

// cut takes n units off the oldest.
func (o *oracle) cut(n int64) {
	for i := range o.log {
		part := max(0, min(n, o.log[i].cost))
		o.log[i].cost -= part
		n -= part
	}
}

// first is the first whole microsecond from now on at which something holds that
// goes on holding.
func first(holds func(after int64) bool) int64 {
	if holds(0) {
		return 0
	}
	most := int64(1)
	for !holds(most) {
		most *= 2
	}
	return int64(sort.Search(int(most), func(d int) bool { return holds(int64(d)) }))
}

// waits is how long, rounded up, until c fits at t.
func (o *oracle) waits(t, c int64) int64 {
	over := o.used(t)
	over.Add(over, rat(c-fullOf(o.limit)))
	if over.Sign() <= 0 {
		return 0
	}
	return ceilOf(pace(o.limit, over))
}

func (o *oracle) passes(t, c int64) bool {
	full := fullOf(o.limit)
	if o.limit.Algorithm == comporta.TokenBucket {
		return c <= full && o.waits(t, c) <= o.limit.MaxWait.Microseconds()
	}
	return new(big.Rat).Add(o.used(t), rat(c)).Cmp(rat(full)) <= 0
}

func (o *oracle) take(l comporta.Limit, now, c int64) (answer, ticket) {
	now = o.arrive(l, now)
	if l.Limit == 0 {
		o.forget()
		a := answer{Allowed: c == 0}
		if c > 0 {
			a.RetryAfter = -1
		}
		return a, ticket{}
	}
	full := fullOf(l)
	a := answer{Allowed: c == 0 || o.passes(now, c), Limit: full}
	var taken ticket
	if c > 0 && a.Allowed {
		switch l.Algorithm {
		case comporta.LeakyBucket:
			a.Delay = ceilOf(pace(l, o.used(now)))
		case comporta.TokenBucket:
			a.Delay = o.waits(now, c)
		}
		o.spend(now, c)
		taken = ticket{now, c, o.last, o.lives}
	} else if c > 0 && c <= full && l.Charge == comporta.Attempts {
		o.attempt(now, c)
	}
	o.tell(&a, now, c)
	return a, taken
}

// spend adds c to what is used, at now.
func (o *oracle) spend(now, c int64) {
	o.bring(now)
	o.known = true
	o.level = new(big.Rat).Add(o.level, rat(c))
	o.cur += c
	o.log = append(o.log, loggedUnit{now, c})
	o.join()
}

func (o *oracle) join() {
	o.queue++
	o.last = o.queue
}

// attempt charges a denied take of c.
func (o *oracle) attempt(now, c int64) {
	full, used := fullOf(o.limit), o.used(now)
	o.bring(now)
	switch o.limit.Algorithm {
	case comporta.FixedWindow:
		o.cur = max(o.cur, full)
	case comporta.SlidingCounter:
		o.cur = max(o.cur, min(full, o.cur+c))
	case comporta.SlidingLog:
		o.cut(min(c, floorOf(used)+c-full))
		o.log = append(o.log, loggedUnit{now, c})
	default:
		if used.Cmp(rat(full)) < 0 {
			o.level = rat(full)
		}
	}
	o.join()
}

// tell fills in the numbers of the state after the take.
func (o *oracle) tell(a *answer, now, c int64) {
	left := func(t int64) int64 { return max(0, floorOf(new(big.Rat).Sub(rat(a.Limit), o.used(t)))) }
	a.Remaining = left(now)
	a.FullAfter = first(func(d int64) bool { return o.used(now+d).Sign() == 0 })
	if a.FullAfter > 0 {
		a.ResetAfter = first(func(d int64) bool { return left(now+d) > a.Remaining })
	}
	switch {
	case a.Allowed:
	case c > a.Limit:
		a.RetryAfter = -1
	default:
		a.RetryAfter = first(func(d int64) bool { return o.passes(now+d, c) })
	}
}

func (o *oracle) settle(l comporta.Limit, now int64, taken ticket, actual int64) answer {
	now = o.arrive(l, now)
	switch back := taken.cost - actual; {
	case l.Limit == 0 || back == 0:
	case back < 0:
		o.owe(now, -back)
	case o.known:
		o.bring(now)
		o.refund(now, taken, back)
	}
	a, _ := o.take(l, now, 0)
	return a
}

// owe charges without asking, down to one full budget below empty.
func (o *oracle) owe(now, more int64) {
	full, used := fullOf(o.limit), o.used(now)
	o.bring(now)
	o.known = true
	deepest := func(n int64) int64 { return max(n, min(n+more, 2*full)) }
	o.cur = deepest(o.cur)
	if debt := deepest(floorOf(used)) - floorOf(used); debt > 0 {
		o.log = append(o.log, loggedUnit{now, debt})
	}
	if sum := new(big.Rat).Add(used, rat(more)); sum.Cmp(rat(2*full)) < 0 {
		o.level = sum
	} else if used.Cmp(rat(2*full)) < 0 {
		o.level = rat(2 * full)
	}
	o.join()
}

// refund gives back, never past full.
func (o *oracle) refund(now int64, taken ticket, back int64) {
	k, _ := o.window(o.limit, now)
	then, _ := o.window(o.limit, taken.at)
	switch o.limit.Algorithm {
	case comporta.FixedWindow:
		if then == k {
			o.cur = max(0, o.cur-back)
		}
	case comporta.SlidingCounter:
		if then == k {
			o.cur = max(0, o.cur-back)
		} else if then == k-1 {
			o.prev = max(0, o.prev-back)
		}
	case comporta.SlidingLog:
		for i := range o.log {
			if o.log[i].at == taken.at {
				part := min(back, o.log[i].cost)
				o.log[i].cost -= part
				back -= part
			}
		}
	case comporta.LeakyBucket:
		if taken.place != o.last {
			return
		}
		fallthrough
	default:
		o.level = new(big.Rat).Sub(o.level, rat(back))
		if o.level.Sign() < 0 {
			o.level = rat(0)
		}
	}
}
