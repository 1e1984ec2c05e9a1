package client

import (
	"context"
	"time"
)

// A Caller is what a Transport is made of, for carriers other than HTTP, such
// as package grpcclient: it waits in line, sends, learns from the answer, and
// sends again what may be sent again. It is safe for concurrent use.
type Caller struct{}

// NewCaller is a caller; Transport, Account, Partition, AttemptHeader and
// ExpectAbove are without effect.
func NewCaller(o Options) *Caller { panic("todo") }

// A Call is one request, whatever carries it.
type Call struct {
	// Target is the server, and Partition what it counts apart there.
	Target, Partition string
	// Identity and Cost are for the outbound limit; a Cost of 0 only looks.
	Identity string
	Cost     int64
	// Repeat: it may be sent again though the server may have acted on it. Resend: it
	// may be sent again when the server refused it. Neither: it is sent once.
	Repeat, Resend bool
}

// An Answer is what came back from one attempt.
type Answer struct {
	Kind Kind
	// Wait is the time that the server told to wait, where Told.
	Wait time.Duration
	Told bool
	// Word is the server's own word on trying again.
	Word Word
	// Final says that the same request would fail again, as with a wrong certificate.
	Final bool
	// Hints are what it said of its limits.
	Hints []Hint
	// Status and Err are for Event alone.
	Status int
	Err    error
}

// A Kind is what became of an attempt.
type Kind uint8

const (
	Accepted   Kind = iota // the server dealt with it, whatever it thought of it
	Refused                // over a limit, and not acted upon: 429, RESOURCE_EXHAUSTED
	Overloaded             // the server has too much to do: 503, UNAVAILABLE
	Failed                 // lost or broken; whether the server acted is not known
	Cancelled              // the caller itself gave up
)

// A Word is what a server may say of trying again: x-should-retry, a pushback.
type Word uint8

const (
	Unsaid Word = iota
	Again       // it may be tried again
	Never       // it is not to be
)

// Do sends a call until it is accepted or must not be sent again. try sends it
// once and is told which attempt it is, from 1; its context ends with ctx, and is
// marked (see NoRetry). The error is nil when the last answer was Accepted;
// where no attempt was made, Attempts in it is 0, or it is the context's error.
func (c *Caller) Do(ctx context.Context, call *Call, try func(ctx context.Context, attempt int) Answer) error {
	panic("todo")
}

// NoRetry is a context in which nothing is sent twice: for callers that retry
// themselves, since retries of retries multiply. The attempts of a Transport have
// it, so that one Transport around another does not.
func NoRetry(ctx context.Context) context.Context { panic("todo") }

// Stats are the counts so far.
func (c *Caller) Stats() Stats { panic("todo") }
