package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/comporta/comporta"
)

var _ comporta.Resetter = (*Store)(nil)

// Reset makes keys new; see [comporta.Resetter]. In a cluster it is one call for
// each slot that they lie in. Units that lie in this instance's leases are given
// up; those in other instances' may still be used until the leases end, and what
// those instances remember of a denial holds for a second at most.
//
// Errors are those of [Store.Take].
func (s *Store) Reset(ctx context.Context, keys []comporta.Key) error {
	bySlot := map[uint16][]string{}
	for _, k := range keys {
		_, slot := s.laneOf(k.Identity)
		bySlot[slot] = append(bySlot[slot], s.keyOf(k))
	}
	var errs []error
	for _, names := range bySlot {
		errs = append(errs, s.delete(ctx, names))
	}
	now := monotonic()
	for i := range keys {
		s.leases.forget(&keys[i])
		s.known.forget(&keys[i], now)
	}
	return errors.Join(errs...)
}

// delete deletes keys of one slot.
func (s *Store) delete(ctx context.Context, names []string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	command := append([]string{"DEL"}, names...)
	_, err := s.client.Do(within, names[0], command...)
	for isTryAgain(err) && pause(within) {
		_, err = s.client.Do(within, names[0], command...)
	}
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = s.late(within.Err())
	}
	s.breaker.done(ctx, err)
	if err != nil {
		s.failed(err)
		return fmt.Errorf("redisstore: resetting keys: %w", err)
	}
	return nil
}

// forget gives up what is held of a key that is new again: it is not given back,
// as nothing of it is spent any more.
func (ls *leases) forget(key *comporta.Key) {
	s := ls.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[*key]; l != nil {
		l.batches, l.left, l.most, l.again = l.batches[:0], 0, 0, 0
	}
}

// forget forgets all about a key that is new again, and any denial of it that is
// still on its way.
func (k *known) forget(key *comporta.Key, now int64) {
	p := k.place(key)
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	a, used := p.roomLocked(k.sets)
	*a = answer{check: p.check, settled: now}
	used.Store(now)
	k.publishLocked(&p, a, used)
}
