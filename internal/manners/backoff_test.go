package manners

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The sequences of the article, from one seed: the values before chance are 500 ms,
// 1 s, 2 s, …, 30 s, and each jitter mixes the same chances into them.
func TestSequences(t *testing.T) {
	for _, c := range []struct {
		jitter Jitter
		// low and high bound what chance u makes of v, after a wait prev.
		want func(v, prev time.Duration, u float64) time.Duration
	}{
		{Full, func(v, _ time.Duration, u float64) time.Duration { return scale(v, u) }},
		{Equal, func(v, _ time.Duration, u float64) time.Duration { return v/2 + scale(v/2, u) }},
		{Decorrelated, func(_, prev time.Duration, u float64) time.Duration {
			prev = max(prev, 500*time.Millisecond)
			return min(30*time.Second, 500*time.Millisecond+scale(3*prev-500*time.Millisecond, u))
		}},
		{Additive, func(v, _ time.Duration, u float64) time.Duration { return v + scale(v/10, u) }},
		{NoJitter, func(v, _ time.Duration, _ float64) time.Duration { return v }},
	} {
		b := Backoff{Base: 500 * time.Millisecond, Cap: 30 * time.Second, Jitter: c.jitter}
		chance, same := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
		prev := time.Duration(0)
		for n, v := range []time.Duration{500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000} {
			u := 0.0
			if c.jitter != NoJitter {
				u = same.Float64()
			}
			want := c.want(v*time.Millisecond, prev, u)
			got := b.Wait(n+1, prev, chance.Float64)
			if got != want {
				t.Errorf("jitter %d, attempt %d: waits %v, want %v", c.jitter, n+1, got, want)
			}
			prev = got
		}
	}
}

func scale(d time.Duration, u float64) time.Duration { return time.Duration(u * float64(d)) }

func TestBackoffStaysInItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Backoff{
			Base:   time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "base")),
			Cap:    time.Duration(rapid.Int64Range(1, math.MaxInt64/8).Draw(t, "cap")),
			Jitter: Jitter(rapid.IntRange(0, int(NoJitter)).Draw(t, "jitter")),
		}
		b.Base = min(b.Base, b.Cap)
		u := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "u")
		prev := time.Duration(rapid.Int64Range(0, int64(b.Cap)).Draw(t, "prev"))
		w := b.Wait(rapid.IntRange(1, math.MaxInt32).Draw(t, "n"), prev, func() float64 { return u })
		most := b.Cap
		if b.Jitter == Additive {
			most += b.Cap / 10
		}
		if w < 0 || w > most {
			t.Fatalf("waits %v, outside 0 to %v", w, most)
		}
	})
}
