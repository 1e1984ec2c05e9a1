package jwt

import (
	"testing"

	"github.com/comporta/comporta/identity"
)

func BenchmarkVerified(b *testing.B) {
	for _, alg := range []string{"RS256", "ES256", "EdDSA"} {
		b.Run(alg, func(b *testing.B) {
			s := newSource(b, ours().set(b), nil)
			r := bearer(ours().token(b, alg, valid("alice")))
			ring := s.ring.Load()
			b.ReportAllocs()
			for b.Loop() {
				ring.cache = newCache(2)
				if _, shown, err := s.Prove(b.Context(), r); !shown {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSeenBefore(b *testing.B) {
	s := newSource(b, ours().set(b), nil)
	r := bearer(ours().token(b, "RS256", valid("alice")))
	if _, shown, err := s.Prove(b.Context(), r); !shown {
		b.Fatal(err)
	}
	b.Run("Stage", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if s.Stage(r) != identity.Look {
				b.Fatal("forgotten")
			}
		}
	})
	b.Run("Prove", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, shown, err := s.Prove(b.Context(), r); !shown {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkForged(b *testing.B) {
	s := newSource(b, ours().set(b), nil)
	r := bearer(theirs().token(b, "RS256", valid("alice")))
	b.ReportAllocs()
	for b.Loop() {
		if _, shown, _ := s.Prove(b.Context(), r); shown {
			b.Fatal("proved")
		}
	}
}
