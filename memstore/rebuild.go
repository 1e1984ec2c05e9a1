package memstore

import (
	"time"

	"github.com/comporta/comporta"
)

// look is what a peek at a slot's key would answer now, and whether the key is
// full: then it may be dropped, and no answer will ever tell. The lock is held.
func (sh *shard) look(s *Store, h hash, now comporta.Instant) (d comporta.Taken, rule *comporta.Rule, full bool) {
	var c comporta.Cell
	sh.load(s, h, &c)
	rule = c.State.Under
	if now < c.State.At {
		// The clock has stepped back, or a take has read it later than we did: peeks
		// at the state's own instant, which change nothing.
		now = c.State.At
	}
	if rule.NeedsPhase(&c.State) {
		// Its windows' offset comes from the key's text, which is not kept. At the
		// latest it is full one fill time after its last change.
		left := rule.FillTime() - now.Sub(c.State.At)
		d.FullAfter, d.Remaining = max(0, left), rule.Full()-c.State.Cur-c.State.Prev // at the least
		return d, rule, left <= 0
	}
	rule.Advance(&c, now, 0, &d)
	return d, rule, c.State.Zero()
}

// hashIn is the hash of the key in a slot of this shard.
func hashIn(shard int, words [slotWords]uint64) hash {
	return hash{words[0], uint64(shard)<<shardShift | words[1]>>32}
}

// makeWay drops a shard's full keys, and gives it a larger table unless that
// freed two fifths of this one: so the next such pass is far off. It takes some
// tens of nanoseconds a key, with the shard's lock held.
func (sh *shard) makeWay(s *Store, shard int) {
	t := sh.table()
	sh.dropFull(s, shard)
	if sh.live*10 > t.room()*6 {
		sh.rebuild(int(t.slots)*growth/4 + 1)
	}
}

// rebuild moves a shard's keys into a table of so many slots.
func (sh *shard) rebuild(slots int) {
	old := sh.table()
	next := newTable(slots)
	for slot := range old.slots {
		if words := old.read(slot); slotRule(words[1]) != noRule {
			next.add(words)
		}
	}
	sh.setTable(next)
}

// grace is how long a key may stay when it is full. One that is asked often fills
// up between two takes, and would else be dropped and come back all the time.
const grace = time.Second

// dropFull drops the keys of a shard that have been full for a while.
func (sh *shard) dropFull(s *Store, shard int) {
	t := sh.table()
	now := s.clock.now().Add(-grace)
	for slot := uint64(0); slot < t.slots; {
		words := t.read(slot)
		if slotRule(words[1]) != noRule {
			h := hashIn(shard, words)
			if _, _, full := sh.look(s, h, now); full {
				at := found{slot: slot, w1: words[1], ok: true}
				sh.drop(s, h, at, sh.ringOf(s, h, at))
				continue // another may have moved up into this slot
			}
		}
		slot++
	}
}

// Sweep drops every key that has been full for a second, and rules that no key is
// under any more, and gives memory back. The store does it by itself, see
// Options.Sweep.
func (s *Store) Sweep() {
	s.rules.sweeping.Lock()
	defer s.rules.sweeping.Unlock()
	held := s.rules.begin()
	for i := range s.shards {
		sh := &s.shards[i]
		seq := sh.lock()
		if sh.live > 0 {
			sh.dropFull(s, i)
		}
		if t := sh.table(); t.slots > fewestSlots && sh.live < t.room()/2 {
			sh.rebuild(max(fewestSlots, (sh.live+2)*10/fullTenths*growth/4))
		}
		held.count(sh.table())
		sh.unlock(seq)
	}
	s.rules.forget(held)
}

// dropsAfter is the fill time from which on a limit's keys are never dropped:
// what takes so long to come back would be missed.
const dropsAfter = time.Hour

// sampleSize is how many keys are looked at to find the one to drop, and
// largestSample how many where none of those may be.
const (
	sampleSize    = 8
	largestSample = 64
)

// makeRoom drops one key: any that is full, else the fullest of a sample. It
// says whether there was one to drop. No lock is held.
func (s *Store) makeRoom() bool {
	var (
		now     = s.clock.now()
		best    hash
		bestIn  = -1
		least   = comporta.Never
		sampled = 0
	)
	enough := func() bool { return sampled >= sampleSize && bestIn >= 0 || sampled >= largestSample }
	start := s.turn.Add(0x9e3779b97f4a7c15) >> 32
	for i := range uint64(shards) {
		if enough() {
			break
		}
		shard := int((start + i) % shards)
		sh := &s.shards[shard]
		seq := sh.lock()
		t := sh.table()
		for j := range t.slots {
			slot := (start*0x9e37 + j) % t.slots
			words := t.read(slot)
			if slotRule(words[1]) == noRule {
				continue
			}
			h := hashIn(shard, words)
			d, rule, full := sh.look(s, h, now)
			if full {
				at := found{slot: slot, w1: words[1], ok: true}
				sh.drop(s, h, at, sh.ringOf(s, h, at))
				sh.unlock(seq)
				return true
			}
			if mayGo(&d, rule) && d.FullAfter < least {
				if _, overflow := s.spill.Load(h); !overflow {
					best, bestIn, least = h, shard, d.FullAfter
				}
			}
			if sampled++; enough() {
				break
			}
		}
		sh.unlock(seq)
	}
	if bestIn < 0 {
		return false
	}
	sh := &s.shards[bestIn]
	seq := sh.lock()
	defer sh.unlock(seq)
	var c comporta.Cell
	if at := sh.load(s, best, &c); at.ok {
		// Takes may have emptied it since it was looked at: then look for another.
		if d, rule, full := sh.look(s, best, now); full || mayGo(&d, rule) {
			sh.drop(s, best, at, sh.ringOf(s, best, at))
			s.stats.evicted.Add(1)
		}
	}
	return true
}

// mayGo says whether a key that is not full may be dropped.
func mayGo(d *comporta.Taken, rule *comporta.Rule) bool {
	return d.Remaining > 0 && rule.FillTime() < dropsAfter
}
