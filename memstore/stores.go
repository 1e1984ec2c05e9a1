//go:build race || !amd64

package memstore

import "sync/atomic"

// store is an atomic store where plain ones may become visible before the lock's
// number that was stored first (as on ARM without the large system extensions),
// and under the race detector, which cannot know the bargain.
func store(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// release stores the number that unlocks a shard.
func release(p *atomic.Uint64, v uint64) { p.Store(v) }
