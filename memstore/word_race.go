//go:build race

package memstore

import "sync/atomic"

func store(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
