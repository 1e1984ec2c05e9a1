package manners

import "time"

// A Jitter says how chance is mixed into a wait of the caller's own choice.
type Jitter uint8

const (
	Full         Jitter = iota // between 0 and v
	Equal                      // between v/2 and v
	Decorrelated               // between Base and three times the wait before, at most Cap
	Additive                   // v and up to a tenth of it more
	NoJitter                   // v
)

// A Backoff is a caller's own wait where the server told none: v is
// min(Cap, Base·2^(n−1)) before attempt n+1.
//
// Source: Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog,
// 2015.
type Backoff struct {
	Base, Cap time.Duration
	Jitter    Jitter
}

// Wait is the wait before attempt n+1, n from 1; prev is the wait before it, 0
// for none. random is uniform in [0, 1).
func (b *Backoff) Wait(n int, prev time.Duration, random func() float64) time.Duration {
	v := b.step(n)
	switch b.Jitter {
	case Full:
		return part(v, random)
	case Equal:
		return v/2 + part(v-v/2, random)
	case Decorrelated:
		prev = min(max(prev, b.Base), b.Cap)
		return min(b.Cap, b.Base+part(max(3*prev-b.Base, 0), random))
	case Additive:
		return v + part(v/10, random)
	}
	return v
}

// step is v.
func (b *Backoff) step(n int) time.Duration {
	v := b.Base
	for ; n > 1 && v < b.Cap; n-- {
		v *= 2
	}
	return min(v, b.Cap)
}

// above is what is added to a time that the server told, so that those who were
// told the same do not come back together: never less than nothing.
func (b *Backoff) above(most time.Duration, random func() float64) time.Duration {
	if b.Jitter == NoJitter {
		return 0
	}
	return part(most, random)
}

func part(d time.Duration, random func() float64) time.Duration {
	return time.Duration(random() * float64(d))
}
