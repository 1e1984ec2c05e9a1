package comporta_test

import (
	"math/rand/v2"
	"testing"

	"github.com/comporta/comporta/storetest"
	"pgregory.net/rapid"
)

func TestLaws(t *testing.T) { storetest.Laws(t, storetest.Limits()) }

func FuzzLaws(f *testing.F) { fuzz(f, storetest.AnyLaw) }

func FuzzOracle(f *testing.F) { fuzz(f, againstOracle) }

// fuzz tries a property on draws from bytes. The seeds are long enough for a
// whole history; a draw that finds no bytes left ends its run.
func fuzz(f *testing.F, property func(*rapid.T)) {
	for seed := range uint64(16) {
		random := rand.NewChaCha8([32]byte{byte(seed)})
		bytes := make([]byte, 1024)
		_, _ = random.Read(bytes) // never fails
		f.Add(bytes)
	}
	f.Fuzz(rapid.MakeFuzz(property))
}
