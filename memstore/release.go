//go:build race || !amd64

package memstore

import "sync/atomic"

func release(p *atomic.Uint64, v uint64) { p.Store(v) }
