package manners

import "time"

// A Config is what callers may choose. It has no defaults: package client fills
// them in.
type Config struct {
	// Attempts is how often one request is sent at most, the first time included.
	Attempts int
	// MaxWait is the longest wait for a time that a server told.
	MaxWait time.Duration
	Backoff Backoff
	// Percent of first attempts is what retries may be, beyond Reserve of them that
	// may come at once and one a second. A negative Percent sets no budget.
	Percent float64
	Reserve float64
	Pace    Pace
	// K is that of adaptive throttling; 0 is without.
	K float64
	// Random is uniform in [0, 1).
	Random func() float64
}

// A Pace says how a caller uses what a server says remains.
type Pace uint8

const (
	// Gentle goes freely while more than half remains, then spreads the rest, with at
	// most a second between two requests.
	Gentle Pace = iota
	// Strict spreads all that remains over the time to the reset.
	Strict
	// Free looks at nothing but refusals.
	Free
)

// A Kind is what became of an attempt.
type Kind uint8

const (
	// Accepted: the server dealt with it, whatever it thought of it.
	Accepted Kind = iota
	// Refused: over a limit, and not acted upon (429, RESOURCE_EXHAUSTED).
	Refused
	// Overloaded: the server has too much to do (503, UNAVAILABLE); whether it acted is
	// not known.
	Overloaded
	// Failed: lost or broken on the way; whether the server acted is not known.
	Failed
	// Cancelled: the caller itself gave up; nothing is learnt.
	Cancelled
)

// A Word is what a server may say of trying again.
type Word uint8

const (
	Unsaid Word = iota
	Again
	Never
)

// An Answer is what came back from one attempt, whatever carried it.
type Answer struct {
	Kind Kind
	// Wait is what the server told to wait, where Told.
	Wait time.Duration
	Told bool
	// Word is the server's own word on trying again.
	Word Word
	// Retryable says that an answer of this kind may pass later; a Failed that cannot
	// (a wrong certificate) is not.
	Retryable bool
	Hints     []Hint
}

// A Hint is what a response says of one policy's budget. What is negative was
// not said.
type Hint struct {
	// Policy names the policy, with its partition.
	Policy string
	// Limit and Remaining are in requests, unless Other: then one request may cost
	// any number of them.
	Limit, Remaining int64
	Other            bool
	// Reset is the time until more remains; Window that of Limit.
	Reset, Window time.Duration
}
