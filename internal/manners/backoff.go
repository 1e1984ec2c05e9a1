package manners

import "time"

// A Jitter says how chance is mixed into a wait of the caller's own choice.
type Jitter uint8

const (
	Full Jitter = iota
	Equal
	Decorrelated
	Additive
	NoJitter
)

// A Backoff is a caller's own wait where the server told none.
type Backoff struct {
	Base, Cap time.Duration
	Jitter    Jitter
}

// Wait is the wait before attempt n+1, n from 1; prev is the wait before it.
func (b *Backoff) Wait(n int, prev time.Duration, random func() float64) time.Duration { panic("todo") }
