package redisstore

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/comporta/comporta"
)

// The operations of an item.
const (
	opTake = iota
	opDenied
	opSettle
	opWish
)

// Flags of a take.
const (
	chargesAttempts = 1
	isShadow        = 2
)

// An item is what the script steps at once: the takes of a request, as many
// times over as requests ask the very same, a settlement, or a wish.
type item struct {
	op    uint8
	first *request
	last  *request
	n     int
	at    int // of n in the call's body
	seats int // where its seats begin in the call's order
}

// A seat is a key's place in a call.
type seat struct {
	numbers *numbers
	rule    int // counted from 1
	phase   uint64
	item    int // the last that takes from this key alone, counted from 1
}

// A call is one run of the script: the requests that go together, packed. Its
// buffers serve again.
type call struct {
	store    *Store
	now      comporta.Instant // about; for quotas' windows
	deadline int64            // on the monotonic clock

	keys  []string
	index map[comporta.Key]int
	seats []seat
	order []int // the seats of all takes and settlements
	rules map[*comporta.Rule]int
	head  []byte // the rules
	body  []byte // the items
	items []item

	cells []comporta.Cell
	logs  []found
}

func newCall(s *Store) *call {
	return &call{store: s, index: map[comporta.Key]int{}, rules: map[*comporta.Rule]int{}}
}

// reset empties a call.
func (c *call) reset(now comporta.Instant) {
	c.now = now
	clear(c.index)
	clear(c.rules)
	clear(c.keys)
	clear(c.items)
	clear(c.seats)
	c.keys, c.seats, c.order, c.items = c.keys[:0], c.seats[:0], c.order[:0], c.items[:0]
	c.head, c.body = c.head[:0], c.body[:0]
}

const (
	mostKeys  = 1024 // in one call
	mostTakes = 255  // in one request
)

// add packs a request. It is false where the request must wait for another call:
// one of its keys is in this one under other numbers, or the call is full.
func (c *call) add(r *request) bool {
	if len(c.keys)+len(r.takes) > mostKeys && len(c.keys) > 0 {
		return false
	}
	switch {
	case r.settlement != nil:
		return c.settle(r)
	case r.wish != nil:
		return c.wish(r)
	}
	for i := range r.takes {
		t := &r.takes[i]
		if at, known := c.index[t.Key]; known && c.seats[at].numbers.rule != t.Rule {
			return false
		}
	}
	op := uint8(opTake)
	if r.denied {
		op = opDenied
	}
	if len(r.takes) == 1 {
		return c.one(r, op)
	}
	c.items = append(c.items, item{op: op, first: r, last: r, n: 1, seats: len(c.order)})
	c.body = append(c.body, op, 1, 0, uint8(len(r.takes)))
	for i := range r.takes {
		c.take(&r.takes[i], c.seat(r.takes[i].Key, r.takes[i].Rule))
	}
	return true
}

// one packs a request of one take; where the last on its key asked the same, as
// once more of that.
func (c *call) one(r *request, op uint8) bool {
	t := &r.takes[0]
	at := c.seat(t.Key, t.Rule)
	s := &c.seats[at]
	if s.item > 0 && op == opTake && s.numbers.algorithm != slidingLog {
		it := &c.items[s.item-1]
		if first := &it.first.takes[0]; first.Cost == t.Cost && first.Shadow == t.Shadow && it.n < math.MaxUint16 {
			it.last.next, it.last = r, r
			it.n++
			binary.LittleEndian.PutUint16(c.body[it.at:], uint16(it.n))
			return true
		}
	}
	c.items = append(c.items, item{op: op, first: r, last: r, n: 1, at: len(c.body) + 1, seats: len(c.order)})
	if op == opTake {
		s.item = len(c.items)
	}
	c.body = append(c.body, op, 1, 0, 1)
	c.take(t, at)
	return true
}

func (c *call) take(t *comporta.Take, at int) {
	s := &c.seats[at]
	x, y := s.numbers.cost(t.Cost)
	if s.numbers.flags == staggered {
		y = s.numbers.offset(s.phase)
	}
	var flags uint8
	switch {
	case t.Shadow:
		flags = isShadow
	case s.numbers.attempts:
		flags = chargesAttempts
	}
	c.place(at, flags)
	c.body = appendNumber(c.body, x)
	c.body = appendNumber(c.body, y)
}

func (c *call) place(at int, flags uint8) {
	c.order = append(c.order, at)
	c.body = binary.LittleEndian.AppendUint16(c.body, uint16(at+1))
	c.body = binary.LittleEndian.AppendUint16(c.body, uint16(c.seats[at].rule))
	c.body = append(c.body, flags)
}

func (c *call) settle(r *request) bool {
	st := r.settlement
	if at, known := c.index[st.Key]; known && c.seats[at].numbers.rule != st.Rule {
		return false
	}
	at := c.seat(st.Key, st.Rule)
	s := &c.seats[at]
	way, x, y := s.numbers.difference(st)
	when := st.Taken.At
	if s.numbers.algorithm == leaky {
		when = st.Taken.Place
	}
	c.items = append(c.items, item{op: opSettle, first: r, last: r, n: 1, seats: len(c.order)})
	c.body = append(c.body, opSettle, 1, 0, 1)
	c.place(at, way)
	for _, number := range [...]float64{x, y, float64(when), s.numbers.offset(s.phase)} {
		c.body = appendNumber(c.body, number)
	}
	return true
}

// seatOf is the seat of an item's take. It does not ask by the key: who no longer
// waits may have used the memory of its strings again.
func (c *call) seatOf(it *item, take int) *seat { return &c.seats[c.order[it.seats+take]] }

// seat is a key's place in the call, a new one where it has none.
func (c *call) seat(k comporta.Key, rule *comporta.Rule) int {
	if at, known := c.index[k]; known {
		return at
	}
	n := c.store.numbersOf(rule)
	at := c.rules[rule]
	if at == 0 {
		at = len(c.rules) + 1
		c.rules[rule] = at
		c.head = n.append(c.head, c.now)
	}
	s := seat{numbers: n, rule: at}
	if n.flags == staggered {
		s.phase = k.Phase()
	}
	c.keys = append(c.keys, c.store.keyOf(k))
	c.seats = append(c.seats, s)
	c.index[k] = len(c.seats) - 1
	return len(c.seats) - 1
}

// script is the script that the call is for.
func (c *call) script() script {
	if len(c.rules) > 1 || len(c.items) != len(c.seats) {
		return step
	}
	for i := range c.items {
		it := &c.items[i]
		if it.op != opTake || len(it.first.takes) != 1 || it.first.careful {
			return step
		}
	}
	if n := c.seats[0].numbers; n.algorithm != token || n.attempts {
		return step
	}
	return tokenStep
}

// argument is the call's one argument; now is −1 for the server's own time.
func (c *call) argument(now int64) string {
	var b strings.Builder
	b.Grow(12 + len(c.head) + len(c.body))
	var begin [12]byte
	binary.LittleEndian.PutUint64(begin[:], math.Float64bits(float64(now)))
	binary.LittleEndian.PutUint16(begin[8:], uint16(len(c.rules)))
	binary.LittleEndian.PutUint16(begin[10:], uint16(len(c.items)))
	b.Write(begin[:])
	b.Write(c.head)
	b.Write(c.body)
	return b.String()
}

// requests are all that are in the call.
func (c *call) requests(yield func(*request) bool) {
	for i := range c.items {
		for r := c.items[i].first; r != nil; {
			next := r.next // a request may be gone once it is seen
			if !yield(r) {
				return
			}
			r = next
		}
	}
}
