package memstore

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/comporta/comporta"
)

// A shard is a table of keys under one lock, which is a sequence number: odd
// while somebody writes. Readers take none: they read, decide, and look whether
// the number is what it was.
type shard struct {
	seq   atomic.Uint64
	base  unsafe.Pointer // the table's
	slots atomic.Uint64

	// What follows is the writer's.
	live  int                 // slots in use
	rings []ring              // the sliding logs
	free  []uint32            // numbers in rings that are not in use
	wide  map[hash]*wideState // states that fit no slot
	dirty map[hash]struct{}   // what changed and is to be saved
	_     [32]byte            // to 128 bytes, so that no two shards share a line
}

// wideState is a state that fits no slot.
type wideState struct {
	state comporta.State
	ring  uint32
}

// table is the shard's table. Without the lock it may be torn between two: see glance.
func (sh *shard) table() table {
	return table{base: atomic.LoadPointer(&sh.base), slots: sh.slots.Load()}
}

// setTable puts another table in its place. The lock is held.
func (sh *shard) setTable(t table) {
	atomic.StorePointer(&sh.base, t.base)
	sh.slots.Store(t.slots)
}

// lock waits for the shard and is the number to unlock it with.
func (sh *shard) lock() (seq uint64) {
	for spins := 0; ; spins++ {
		if seq = sh.seq.Load(); seq&1 == 0 && sh.seq.CompareAndSwap(seq, seq+1) {
			return seq
		}
		if spins > 16 {
			runtime.Gosched() // the holder may be off its processor
		}
	}
}

// tryLock locks the shard if nothing has changed since seq was read.
func (sh *shard) tryLock(seq uint64) bool { return sh.seq.CompareAndSwap(seq, seq+1) }

// unlock ends what lock or tryLock began.
func (sh *shard) unlock(seq uint64) { release(&sh.seq, seq+2) }

// begin is the number of a shard that nobody writes to.
func (sh *shard) begin() (seq uint64) {
	for spins := 0; ; spins++ {
		if seq = sh.seq.Load(); seq&1 == 0 {
			return seq
		}
		if spins > 16 {
			runtime.Gosched()
		}
	}
}

// found is where a key was found.
type found struct {
	slot uint64
	w1   uint64
	ok   bool
}

// load makes a cell of what the shard knows of a key. The lock is held.
func (sh *shard) load(s *Store, h hash, c *comporta.Cell) (at found) {
	t := sh.table()
	at.slot, at.w1, at.ok = t.find(h)
	if !at.ok {
		return at
	}
	number := slotRule(at.w1)
	if number == wideRule {
		w := sh.wide[h]
		c.State = w.state
		if w.state.Under.Algorithm() == comporta.SlidingLog {
			c.Log = &sh.rings[w.ring]
		}
		return at
	}
	rule := s.rules.get(number)
	c.State.Under = rule
	ring := unpack(&c.State, rule.Algorithm(), at.w1, t.load(at.slot, 2), t.load(at.slot, 3))
	if rule.Algorithm() == comporta.SlidingLog {
		c.Log = &sh.rings[ring]
	}
	return at
}

// glance is load without the lock, for a shard whose number was seq. It is false
// where that has changed, and what was read means nothing; and where the state
// is not in the slot alone (aside): that wants the lock.
func (sh *shard) glance(s *Store, h hash, seq uint64, c *comporta.Cell) (at found, aside, ok bool) {
	t := sh.table()
	if sh.seq.Load() != seq {
		return at, false, false // the table may be torn: do not touch it
	}
	at.slot, at.w1, at.ok = t.find(h)
	if !at.ok {
		return at, false, sh.seq.Load() == seq
	}
	number := slotRule(at.w1)
	w2, w3 := t.load(at.slot, 2), t.load(at.slot, 3)
	if number == wideRule {
		return at, true, sh.seq.Load() == seq
	}
	rule := s.rules.get(number)
	if sh.seq.Load() != seq {
		return at, false, false // the number may be another rule's by now, or nobody's
	}
	if rule.Algorithm() == comporta.SlidingLog {
		return at, true, true
	}
	c.State.Under = rule
	unpack(&c.State, rule.Algorithm(), at.w1, w2, w3)
	return at, false, true
}

// commit keeps a changed cell. The lock is held; at is where load found the key.
func (sh *shard) commit(s *Store, h hash, c *comporta.Cell, at found) {
	if c.Fault {
		s.stats.faults.Add(1)
	}
	if at.ok && sh.rewrite(s, h, &c.State, at) {
		return
	}
	ring := sh.ringOf(s, h, at)
	if c.State.Zero() {
		if at.ok {
			sh.drop(s, h, at, ring)
		}
		return
	}
	if c.State.Under.Algorithm() == comporta.SlidingLog {
		if ring == noRing {
			ring = sh.newRing()
		}
		r := &sh.rings[ring]
		before := r.bytes()
		r.apply(&c.Edit, c.State.Under, s.logsFull())
		s.stats.logBytes.Add(int64(r.bytes() - before))
	} else if ring != noRing {
		sh.freeRing(s, ring)
		ring = noRing
	}
	sh.write(s, h, &c.State, at, ring)
}

// rewrite puts a state into the slot that it came from, if it is under the same
// rule, fits and has no ring: nearly always.
func (sh *shard) rewrite(s *Store, h hash, state *comporta.State, at found) bool {
	rule, number := state.Under, slotRule(at.w1)
	if rule == nil || number == wideRule || rule.Algorithm() == comporta.SlidingLog {
		return false
	}
	if made := s.rules.get(number); made != rule && !made.Same(rule) {
		return false
	}
	w1, w2, w3, fits := pack(state, rule.Algorithm(), number, 0)
	if !fits {
		return false
	}
	t := sh.table()
	t.store(at.slot, 1, hashBits(h)|w1)
	t.store(at.slot, 2, w2)
	t.store(at.slot, 3, w3)
	if s.saver != nil {
		sh.mark(s, rule, h)
	}
	return true
}

// ringOf is the number of the ring that a key has, or noRing.
func (sh *shard) ringOf(s *Store, h hash, at found) uint32 {
	if !at.ok {
		return noRing
	}
	if number := slotRule(at.w1); number != wideRule {
		if s.rules.get(number).Algorithm() != comporta.SlidingLog {
			return noRing
		}
		return uint32(sh.table().load(at.slot, 3))
	}
	if w := sh.wide[h]; w.state.Under.Algorithm() == comporta.SlidingLog {
		return w.ring
	}
	return noRing
}

// write puts a state into its slot, or beside it when it does not fit.
func (sh *shard) write(s *Store, h hash, state *comporta.State, at found, ring uint32) {
	rule := state.Under
	number := s.rules.number(rule)
	var w1, w2, w3 uint64
	fits := false
	if number != wideRule {
		w1, w2, w3, fits = pack(state, rule.Algorithm(), number, ring)
	}
	if !fits {
		w1, w2, w3 = wideRule<<ruleShift, 0, 0
		if sh.wide == nil {
			sh.wide = make(map[hash]*wideState)
		}
		sh.wide[h] = &wideState{*state, ring}
	} else if at.ok && slotRule(at.w1) == wideRule {
		delete(sh.wide, h)
	}
	sh.mark(s, rule, h)
	words := [slotWords]uint64{h.hi, hashBits(h) | w1, w2, w3}
	if at.ok {
		sh.table().put(at.slot, words)
		return
	}
	sh.insert(s, h, words)
}

// insert adds a slot, making room for it.
func (sh *shard) insert(s *Store, h hash, words [slotWords]uint64) {
	if sh.live >= sh.table().room() {
		sh.makeWay(s, h.shard())
	}
	sh.table().add(words)
	sh.live++
	s.stats.keys.Add(1)
}

// drop removes a key that is found.
func (sh *shard) drop(s *Store, h hash, at found, ring uint32) {
	number := slotRule(at.w1)
	rule := s.rules.get(number % wideRule)
	if number == wideRule {
		rule = sh.wide[h].state.Under
		delete(sh.wide, h)
	}
	if ring != noRing {
		sh.freeRing(s, ring)
	}
	sh.mark(s, rule, h)
	sh.table().remove(at.slot)
	sh.live--
	s.stats.keys.Add(-1)
}

// mark notes that what is known of a key has changed, where that is to be saved
// before the store closes.
func (sh *shard) mark(s *Store, rule *comporta.Rule, h hash) {
	if !s.saves(rule) {
		return
	}
	if sh.dirty == nil {
		sh.dirty = make(map[hash]struct{})
	}
	sh.dirty[h] = struct{}{}
}

// newRing is the number of an empty ring.
func (sh *shard) newRing() uint32 {
	if n := len(sh.free); n > 0 {
		ring := sh.free[n-1]
		sh.free = sh.free[:n-1]
		return ring
	}
	sh.rings = append(sh.rings, ring{})
	return uint32(len(sh.rings) - 1)
}

func (sh *shard) freeRing(s *Store, i uint32) {
	s.stats.logBytes.Add(-int64(sh.rings[i].bytes()))
	sh.rings[i] = ring{}
	sh.free = append(sh.free, i)
}
