package memstore

import (
	"context"

	"github.com/comporta/comporta"
)

// Reset makes keys new, all in one step; see [comporta.Resetter]. What clients
// share for want of room, their limit's overflow key, stays as it is. It has no
// errors.
func (s *Store) Reset(_ context.Context, keys []comporta.Key) error {
	b := s.batches.Get().(*batch)
	defer s.batches.Put(b)
	b.hashes = b.hashes[:0]
	for i := range keys {
		b.hashes = append(b.hashes, s.hash(&keys[i]))
	}
	b.lock(s)
	defer b.unlock(s)
	for _, h := range b.hashes {
		sh := &s.shards[h.shard()]
		var c comporta.Cell
		if at := sh.load(s, h, &c); at.ok {
			sh.drop(s, h, at, sh.ringOf(s, h, at))
		}
	}
	return nil
}
