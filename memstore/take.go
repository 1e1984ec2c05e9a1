package memstore

import (
	"context"
	"slices"

	"github.com/comporta/comporta"
)

// TakeOne is Take for one limit. It does not allocate on a resident key, and
// takes no lock unless something changes or the limit is a sliding log.
func (s *Store) TakeOne(_ context.Context, key comporta.Key, rule *comporta.Rule, cost int64) (comporta.Decision, error) {
	if uint64(cost) > comporta.MaxCost {
		return comporta.Decision{}, comporta.CheckTakes([]comporta.Take{{Key: key, Cost: cost}})
	}
	h := s.hash(&key)
	sh := &s.shards[h.shard()]
	var d comporta.Taken
	for {
		var c comporta.Cell
		seq := sh.begin()
		rule := rule.Current() // as of now: what changes meanwhile changes seq
		// Only now: an instant from before another's write would look like a clock
		// that stepped back.
		now := s.clock.now()
		at, aside, ok := sh.glance(s, h, seq, &c)
		if !ok {
			continue // somebody wrote meanwhile
		}
		locked := aside || rule.Algorithm() == comporta.SlidingLog
		if locked {
			if !sh.tryLock(seq) {
				continue
			}
			at = sh.load(s, h, &c)
		}
		if rule.NeedsPhase(&c.State) {
			c.State.Phase = key.Phase()
		}
		rule.Advance(&c, now, cost, &d)
		wantsRoom := !at.ok && c.Changed && s.full()
		switch {
		case !c.Changed || wantsRoom:
			if locked {
				sh.unlock(seq)
			}
		case locked || sh.tryLock(seq):
			sh.commit(s, h, &c, at)
			sh.unlock(seq)
		default:
			continue
		}
		if wantsRoom {
			return s.takeOneMore(key, rule, cost), nil
		}
		return d.Decision, nil
	}
}

// takeOneMore is TakeOne for a key that there may be no room for.
func (s *Store) takeOneMore(key comporta.Key, rule *comporta.Rule, cost int64) comporta.Decision {
	b := s.batches.Get().(*batch)
	defer s.batches.Put(b)
	b.one[0] = comporta.Take{Key: key, Rule: rule, Cost: cost}
	s.takeAll(b, b.one[:], b.taken[:])
	return b.taken[0].Decision
}

// Take asks all in one step; see comporta.Store.
func (s *Store) Take(_ context.Context, takes []comporta.Take, out []comporta.Taken) error {
	if err := comporta.CheckTakes(takes); err != nil {
		return err
	}
	b := s.batches.Get().(*batch)
	defer s.batches.Put(b)
	s.takeAll(b, takes, out)
	return nil
}

// batch is the bench for a step of several keys.
type batch struct {
	cells  []comporta.Cell
	hashes []hash
	found  []found
	locks  []lock // of the shards that the keys are in, ascending

	one   [1]comporta.Take
	taken [1]comporta.Taken
}

type lock struct {
	shard int
	seq   uint64
}

// takeAll locks all the shards that the takes need, in ascending order, and
// steps them together.
func (s *Store) takeAll(b *batch, takes []comporta.Take, out []comporta.Taken) {
	b.hashes = b.hashes[:0]
	for i := range takes {
		b.hashes = append(b.hashes, s.hash(&takes[i].Key))
	}
	overflowing := false
	for !s.tryAll(b, takes, out, overflowing) {
		if !s.makeRoom() {
			// No key may be dropped: the new ones share their limits' overflow keys.
			for i := range takes {
				if !b.found[i].ok {
					b.hashes[i] = s.overflow(takes[i].Key.Limit, b.hashes[:i])
					s.stats.overflowed.Add(1)
				}
			}
			overflowing = true
		}
	}
}

// tryAll is takeAll unless it needs room for keys that there is none for: then
// it changes nothing and is false.
func (s *Store) tryAll(b *batch, takes []comporta.Take, out []comporta.Taken, overflowing bool) bool {
	b.lock(s)
	defer b.unlock(s)
	takes = comporta.CurrentTakes(takes) // under the locks, as in TakeOne
	now := s.clock.now()
	b.cells = slices.Grow(b.cells[:0], len(takes))[:len(takes)]
	b.found = slices.Grow(b.found[:0], len(takes))[:len(takes)]
	for i := range takes {
		c := &b.cells[i]
		*c = comporta.Cell{}
		b.found[i] = s.shards[b.hashes[i].shard()].load(s, b.hashes[i], c)
		if takes[i].Rule.NeedsPhase(&c.State) {
			c.State.Phase = s.phase(&takes[i].Key, b.hashes[i])
		}
	}
	comporta.AdvanceAll(takes, b.cells, now, out)
	fresh := int64(0)
	for i := range takes {
		if b.cells[i].Changed && !b.found[i].ok && !b.cells[i].State.Zero() {
			fresh++
		}
	}
	if fresh > 0 && !overflowing && s.stats.keys.Load()+fresh > s.maxKeys {
		return false
	}
	for i := range takes {
		if b.cells[i].Changed {
			sh := &s.shards[b.hashes[i].shard()]
			// Another of this step may have moved it since.
			var ignored comporta.Cell
			sh.commit(s, b.hashes[i], &b.cells[i], sh.load(s, b.hashes[i], &ignored))
		}
	}
	return true
}

// lock locks the shards of all hashes, each once, lowest first.
func (b *batch) lock(s *Store) {
	b.locks = b.locks[:0]
	for _, h := range b.hashes {
		i, locked := slices.BinarySearchFunc(b.locks, h.shard(), func(l lock, shard int) int { return l.shard - shard })
		if !locked {
			b.locks = slices.Insert(b.locks, i, lock{shard: h.shard()})
		}
	}
	for i := range b.locks {
		b.locks[i].seq = s.shards[b.locks[i].shard].lock()
	}
}

func (b *batch) unlock(s *Store) {
	for _, l := range b.locks {
		s.shards[l.shard].unlock(l.seq)
	}
}

func (s *Store) full() bool { return s.stats.keys.Load() >= s.maxKeys }

// Settle settles takes one after the other; see comporta.Store.
func (s *Store) Settle(_ context.Context, settlements []comporta.Settlement, out []comporta.Taken) error {
	if err := comporta.CheckSettlements(settlements); err != nil {
		return err
	}
	for i := range settlements {
		s.settle(&settlements[i], &out[i])
	}
	return nil
}

func (s *Store) settle(t *comporta.Settlement, d *comporta.Taken) {
	h := s.hash(&t.Key)
	for !s.trySettle(t, h, d) {
		if !s.makeRoom() {
			h = s.overflow(t.Key.Limit, nil)
		}
	}
}

// trySettle is settle unless it needs room for a key that there is none for.
func (s *Store) trySettle(t *comporta.Settlement, h hash, d *comporta.Taken) bool {
	sh := &s.shards[h.shard()]
	seq := sh.lock()
	defer sh.unlock(seq)
	now := s.clock.now()
	rule := t.Rule.Current()
	var c comporta.Cell
	at := sh.load(s, h, &c)
	phase := uint64(0)
	if rule.NeedsPhase(&c.State) {
		phase = s.phase(&t.Key, h)
	}
	c.State.Phase = phase
	rule.Settle(&c, now, t.Taken, t.Actual)
	if c.Changed && !at.ok && !c.State.Zero() && s.full() && h == s.hash(&t.Key) {
		return false
	}
	if c.Changed {
		sh.commit(s, h, &c, at)
	}
	c = comporta.Cell{}
	at = sh.load(s, h, &c)
	c.State.Phase = phase
	rule.Advance(&c, now, 0, d)
	if c.Changed {
		sh.commit(s, h, &c, at)
	}
	return true
}
