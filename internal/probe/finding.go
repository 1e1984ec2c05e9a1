package probe

import (
	"context"
	"time"

	"github.com/comporta/comporta"
)

// A Finding is what the limit seems to be, and how sure that is.
type Finding struct {
	// Limited is false where no limit was met within the budget; then AtLeast is how
	// many requests were admitted in Within.
	Limited bool
	AtLeast int
	Within  time.Duration

	Limit  comporta.Limit // as a policy file would have it
	Window Estimate       // seconds
	Units  Estimate       // units a window
	Burst  Estimate       // of buckets: what they hold
	// Algorithms are the candidates, likeliest first; the sums of Certainty are 1 at most.
	Algorithms []Candidate
	// Evidence is the reasoning, in sentences for people.
	Evidence []string
	// DenialsCount says whether denied requests count, and how sure that is.
	DenialsCount Answer
}

// An Estimate is a number with the range in which it lies for sure.
type Estimate struct{ Value, Low, High float64 }

// A Candidate is an algorithm with the certainty that it is the one.
type Candidate struct {
	Algorithm comporta.Algorithm
	Certainty float64
}

// An Answer is one of yes, no and unknown, with how sure it is and why.
type Answer struct {
	Known, Yes bool
	Certainty  float64
	Why        string
}

// Learn finds the limit of the session's first identity. It assumes that nobody else
// uses that identity meanwhile. It stops early when the session ends (the error says
// how) with what it knows until then: the finding is never nil.
//
// It exhausts the budget of the identity some three to ten times, with volleys as
// large as the limit, and compares what was admitted and denied, and when, with what
// each of the five algorithms would have done; each further round is the one that
// tells most of what still fits apart. The instant of each decision is only assumed
// to lie between the sending and the answer.
func Learn(ctx context.Context, s *Session) (*Finding, error) {
	l := newLearner(ctx, s)
	err := l.learn()
	e := l.evidence()
	f := l.finding(e)
	l.end()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return f, err
}
