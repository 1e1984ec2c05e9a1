package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/comporta/comporta"
)

// errForm is the error of a reply that is not the script's, or that the Go step
// disagrees with: a fault of ours, or a server that is not what it seems.
var errForm = errors.New("redisstore: the script's reply cannot be read: it is not known whether units were spent")

// outsideWindows is the error of a request whose quota the script knew no window
// for: the server's time is not about what it was thought to be. Nothing was done.
type outsideWindows struct{ now comporta.Instant }

func (e *outsideWindows) Error() string {
	return fmt.Sprintf("redisstore: the server's time, %v, is in no window that was named", e.now.Time())
}

// errCareful is the error of a request that the script for token buckets leaves
// to the other. Nothing was done.
var errCareful = errors.New("redisstore: the state is unusual")

// An item's status in a reply, where it is not done.
const (
	statusWindows = 1
	statusCareful = 2
)

// fail fails the requests of an item.
func (it *item) fail(err error) {
	for r := it.first; r != nil; r = r.next {
		r.err = err
	}
}

// Flags of a state in a reply.
const (
	hasState = 1 << iota
	clockFault
	wasReplaced
)

// read gives each request its decisions: the script tells the states that it
// found, and the Go step works out what it did with them.
func (c *call) read(reply string) error {
	p := parser{rest: reply}
	now := p.instant()
	for i := range c.items {
		it := &c.items[i]
		switch p.byte() {
		case statusWindows:
			it.fail(&outsideWindows{p.instant()})
			continue
		case statusCareful:
			it.fail(errCareful)
			continue
		}
		passed := p.count()
		var err error
		switch {
		case it.op == opSettle:
			err = c.readSettled(it, &p)
		case it.op == opWish:
			err = c.readWish(it, &p)
		case len(it.first.takes) == 1:
			err = c.readOne(it, &p, passed)
		default:
			err = c.readAll(it, &p, now, passed)
		}
		if err != nil {
			return err
		}
	}
	if p.strange || p.rest != "" {
		return errForm
	}
	return nil
}

// readOne steps the takes of one key, one after the other.
func (c *call) readOne(it *item, p *parser, passed int) error {
	var cell comporta.Cell
	var log found
	first := &it.first.takes[0]
	seat := c.seatOf(it, 0)
	now := c.cell(&cell, &log, seat, p)
	for r := it.first; r != nil; r = r.next {
		switch {
		case it.op == opDenied:
			stepDenied(r.takes, []comporta.Cell{cell}, now, r.out)
		case first.Shadow:
			c.cells = append(c.cells[:0], cell)
			comporta.AdvanceAll(r.takes, c.cells, now, r.out)
			cell = c.cells[0]
		default:
			first.Rule.Advance(&cell, now, first.Cost, &r.out[0])
		}
		if r.out[0].Allowed {
			passed--
		}
	}
	if passed != 0 {
		return errForm
	}
	return nil
}

func (c *call) readAll(it *item, p *parser, now comporta.Instant, passed int) error {
	r := it.first
	c.cells, c.logs = c.cells[:0], c.logs[:0]
	for range r.takes {
		c.cells, c.logs = append(c.cells, comporta.Cell{}), append(c.logs, found{})
	}
	for i := range r.takes {
		seat := c.seatOf(it, i)
		if at := c.cell(&c.cells[i], &c.logs[i], seat, p); at != now && c.cells[i].State.Zero() {
			// Full again at an instant that is later than now: a state says so.
			c.cells[i].State.At, c.cells[i].State.Under = at, seat.numbers.rule
		}
	}
	if it.op == opDenied {
		stepDenied(r.takes, c.cells, now, r.out)
		return nil
	}
	comporta.AdvanceAll(r.takes, c.cells, now, r.out)
	if allowed := comporta.Resolve(r.takes, r.out).Allowed; allowed != (passed > 0) {
		return errForm
	}
	return nil
}

// deniesAll is a limit that denies: beside it no take of a request is allowed.
var deniesAll, _ = comporta.Limit{Window: comporta.MinWindow}.Compile()

// stepDenied is the step of takes that another limit of their request has denied.
func stepDenied(takes []comporta.Take, cells []comporta.Cell, now comporta.Instant, out []comporta.Taken) {
	all := append(append(make([]comporta.Take, 0, len(takes)+1), takes...), comporta.Take{Rule: deniesAll, Cost: 1})
	step := make([]comporta.Taken, len(all))
	comporta.AdvanceAll(all, append(append(make([]comporta.Cell, 0, len(all)), cells...), comporta.Cell{}), now, step)
	copy(out, step)
}

// readSettled is a peek at what the settlement left.
func (c *call) readSettled(it *item, p *parser) error {
	var cell comporta.Cell
	var log found
	st := it.first.settlement
	now := c.cell(&cell, &log, c.seatOf(it, 0), p)
	st.Rule.Advance(&cell, now, 0, &it.first.out[0])
	return nil
}

// cell reads a state into a cell, and the instant that counts for it.
func (c *call) cell(cell *comporta.Cell, log *found, s *seat, p *parser) comporta.Instant {
	flags := p.byte()
	at := p.instant()
	c.store.seen(flags)
	st := &cell.State
	switch s.numbers.algorithm {
	case token, leaky:
		st.Full, st.Part = p.number(), p.number()
		if s.numbers.algorithm == leaky {
			st.Place = p.instant()
		}
	case fixed, counter:
		st.Cur, st.Prev = p.number(), p.number()
	case slidingLog:
		log.read(p)
		cell.Log = log
	}
	if flags&hasState == 0 {
		*cell = comporta.Cell{}
	} else {
		st.At, st.Under = at, s.numbers.rule
	}
	st.Phase = s.phase
	return at
}

// found is what the script tells of a sliding log: all that the step will ask.
type found struct {
	sum     int64
	newest  comporta.Instant
	units   [2]int64
	reached [2]comporta.Instant
}

func (f *found) read(p *parser) {
	f.sum, f.newest = p.number(), p.instant()
	for i := range f.units {
		f.units[i], f.reached[i] = p.number(), p.instant()
	}
}

// After is the log's sum: the script has let go what left.
func (f *found) After(comporta.Instant) (int64, comporta.Instant) { return f.sum, f.newest }

// Reach is the instant at which the entries reach n units. The step also asks
// about ways that it then does not go: any answer serves there.
func (f *found) Reach(_ comporta.Instant, n int64) comporta.Instant {
	for i, units := range f.units {
		if units == n {
			return f.reached[i]
		}
	}
	return f.newest
}

// At is asked by settlements alone, which the script does by itself.
func (f *found) At(comporta.Instant) int64 { return 0 }

// A parser reads packed numbers. What is missing or no number of ours reads as 0,
// and is said at the end.
type parser struct {
	rest    string
	strange bool
}

func (p *parser) next(n int) string {
	if len(p.rest) < n {
		p.strange, p.rest = true, ""
		return "\x00\x00\x00\x00\x00\x00\x00\x00"[:n]
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) byte() byte { return p.next(1)[0] }

func (p *parser) count() int {
	b := p.next(2)
	return int(b[0]) | int(b[1])<<8
}

// number is a whole number that a script could have counted to; anything else is
// no reply of it, and could lead the step astray.
func (p *parser) number() int64 {
	var b [8]byte
	copy(b[:], p.next(8))
	x := math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
	if !(x >= 0 && x <= 1<<53) {
		p.strange = true
		return 0
	}
	return int64(x)
}

func (p *parser) instant() comporta.Instant { return comporta.Instant(p.number()) }
