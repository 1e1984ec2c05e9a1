package memstore

import (
	"testing"

	"github.com/comporta/comporta"
)

func BenchmarkHash(b *testing.B) {
	k := hashKey{1, 2}
	key := comporta.Key{Limit: "default", Identity: "client-12345"}
	var x uint64
	for b.Loop() {
		x += k.sum(&key).lo
	}
	_ = x
}
