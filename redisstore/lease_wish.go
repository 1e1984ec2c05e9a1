package redisstore

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/comporta/comporta"
)

// A wish asks for units of a key ahead. It goes like any request, and what comes
// of it is the lease's.
type wish struct {
	lease  *lease
	key    comporta.Key
	rule   *comporta.Rule
	terms  comporta.Lease
	number int64 // a later wish of this instance has a larger one
	held   int64 // at most so many are still at hand when the store reads it
	wanted int64

	at    comporta.Instant // that counted
	cell  comporta.Cell    // the state with what was granted spent
	taken comporta.Taken   // the take of what was granted
	units int64
}

// wishLocked is the wish that a lease is due for, nil where there is none: units
// are wanted once half of them are used or their time is nearly over, long before
// the last. Where the store left little that is half of little, so that near
// exhaustion it is not asked in vain again and again.
func (ls *leases) wishLocked(l *lease, now int64) *request {
	if l.asking || now < l.again {
		return nil
	}
	l.measureLocked(now)
	target, lasting := l.target(), l.left
	if now >= l.renew {
		lasting = 0
	}
	wanted := target
	if l.terms.Size == 0 {
		wanted -= lasting
	}
	if 2*lasting > min(target, l.most) || wanted < 1 || ls.closed.Load() || ls.store.breaker.allow() != nil {
		return nil
	}
	l.asking = true
	for i := range l.batches {
		l.batches[i].most = l.batches[i].left // the ledger will count no more
	}
	ls.out.Add(1)
	r := newRequest(0)
	r.wish = &wish{
		lease: l, key: l.key, rule: l.rule, terms: l.terms,
		number: ls.wishes.Add(1), held: l.left, wanted: wanted,
	}
	r.then = ls.answered
	return r
}

// measureLocked smooths the rate by half, once a tenth of a lease has passed.
func (l *lease) measureLocked(now int64) {
	if past := now - l.since; past >= l.tenth() {
		l.rate = (l.rate + float64(l.seen)/float64(past)) / 2
		l.seen, l.since = 0, now
	}
}

func (l *lease) tenth() int64 { return int64(l.terms.TTL) / 10 }

// target is how many units to take at once: what is used in half a lease's life,
// unless the policy says a number. Fewer than 2 are not worth a lease.
func (l *lease) target() int64 {
	n := l.terms.Size
	if n == 0 {
		n = int64(math.Min(l.rate*float64(l.terms.TTL)/2, comporta.MaxUnits))
	}
	if n < 2 {
		return 0
	}
	return n
}

// answered is told how a wish ended.
func (ls *leases) answered(r *request) {
	defer ls.out.Done()
	w, l := r.wish, r.wish.lease
	now, sent := ls.now(), r.sent
	if ls.store.now != nil {
		sent = int64(w.at) * 1000
	}
	s := ls.shard(&l.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer r.free()
	l.asking = false
	if r.err != nil {
		l.again = now + l.tenth()
		return
	}
	life, ofWindow := w.life()
	b := batch{at: w.taken.Receipt.At, left: w.units, most: w.units, ends: sent + life}
	current := l.rule.Same(w.rule) && l.terms == w.terms
	if current {
		l.cell, l.at, l.told, l.replied = w.cell, w.at, w.taken.Decision, now
		l.told.Allowed, l.told.RetryAfter, l.told.Delay = true, 0, 0
	}
	if b.left == 0 {
		l.most, l.again = l.left, now+l.tenth()
		return
	}
	ls.granted.Add(1)
	ls.leased.Add(b.left)
	ls.store.known.note(&l.key, w.rule, b.left, &w.taken.Decision, r.sent, r.replied)
	if !current || ls.closed.Load() || now >= b.ends {
		ls.sendBack(l.key, l.rule, b)
		return
	}
	l.batches = append(slices.DeleteFunc(l.batches, func(b batch) bool { return b.left == 0 }), b)
	l.left += b.left
	l.most = l.left
	l.ends = min(l.ends, b.ends)
	l.renew = b.ends - life/4
	if ofWindow { // more of this window would last no longer
		l.renew = b.ends
	}
	ls.lookLocked(l, l.ends)
}

// life is for how long units may be used, from when the wish was sent on, which
// was before they were spent: until they are old, or until their window ends. It
// is a thousandth shorter, for clocks that run slow.
func (w *wish) life() (nanoseconds int64, ofWindow bool) {
	d := w.terms.TTL
	if !w.rule.Algorithm().Bucket() {
		_, end := w.rule.WindowOf(w.at, w.cell.State.Phase)
		if left := time.Duration(end-w.at) * time.Microsecond; left < d {
			d, ofWindow = left, true
		}
	}
	return int64(d - (d+999)/1000), ofWindow
}

// wish packs a wish into the call.
func (c *call) wish(r *request) bool {
	w := r.wish
	if at, known := c.index[w.key]; known && c.seats[at].numbers.rule != w.rule {
		return false
	}
	at := c.seat(w.key, w.rule)
	s := c.seats[at]
	c.keys = append(c.keys, c.store.ledgerOf(w.key))
	c.seats = append(c.seats, seat{}) // the ledger's: nothing takes from it
	c.items = append(c.items, item{op: opWish, first: r, last: r, n: 1})
	c.body = append(c.body, opWish, 1, 0, 0)
	for _, n := range [...]int{at + 1, s.rule, len(c.keys)} {
		c.body = binary.LittleEndian.AppendUint16(c.body, uint16(n))
	}
	us, ticks := w.rule.TimeFor(1)
	c.body = appendNumber(c.body, s.numbers.offset(s.phase))
	for _, n := range [...]int64{
		us*w.rule.Ticks() + ticks, c.store.leases.id, w.number, w.held, w.wanted,
		w.terms.Most(w.rule.Full()), int64(w.terms.Share), w.terms.TTL.Microseconds(),
	} {
		c.body = appendNumber(c.body, float64(n))
	}
	return true
}

// readWish steps the take of what was granted.
func (c *call) readWish(it *item, p *parser) error {
	var log found
	w := it.first.wish
	w.at = c.cell(&w.cell, &log, &c.seats[c.index[w.key]], p)
	w.units = p.number()
	w.rule.Advance(&w.cell, w.at, w.units, &w.taken)
	w.cell.Log = nil
	if !w.taken.Allowed {
		return errForm
	}
	return nil
}
