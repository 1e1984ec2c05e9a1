package memstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// The numbers that count are those of bench/, beside the peers; these are for a
// profile of one path.
func BenchmarkTake(b *testing.B) {
	for _, keys := range []int{1000, 1_000_000} {
		for _, a := range comporta.Algorithms() {
			for _, deny := range []bool{false, true} {
				name := fmt.Sprintf("keys=%d/%v/deny=%v", keys, a, deny)
				b.Run(name, func(b *testing.B) { benchmarkTake(b, keys, a, deny) })
			}
		}
	}
}

func benchmarkTake(b *testing.B, keys int, a comporta.Algorithm, deny bool) {
	s, err := New(Options{MaxKeys: 2 * keys, Sweep: -1})
	if err != nil {
		b.Fatal(err)
	}
	limit := comporta.Limit{Algorithm: a, Limit: 1_000_000, Window: time.Second}
	if deny {
		limit = comporta.Limit{Algorithm: a, Limit: 1, Window: 24 * time.Hour}
	}
	l, err := comporta.NewLimiter(s, limit)
	if err != nil {
		b.Fatal(err)
	}
	names := make([]byte, 0, keys*12)
	for i := range keys {
		names = fmt.Appendf(names, "key-%08d", i)
		l.Take(b.Context(), fmt.Sprintf("key-%08d", i), 1)
	}
	blob := string(names)
	ctx := b.Context()
	b.ReportAllocs()
	x := uint32(1)
	for b.Loop() {
		x = x*1664525 + 1013904223
		i := int(uint64(x)*uint64(keys)>>32) * 12
		if _, err := l.Take(ctx, blob[i:i+12], 1); err != nil {
			b.Fatal(err)
		}
	}
}
