package sim

import (
	"time"

	"github.com/comporta/comporta"
)

// A Scene is what is simulated: arrivals of one client that is new at time 0,
// under one limit.
type Scene struct {
	// Limit is asked under each of Algorithms in turn; its own algorithm does not count.
	Limit      comporta.Limit
	Algorithms []comporta.Algorithm
	// Lenient leaves out numbers that an algorithm has no use for, such as a
	// window's burst, with a note; without it they are errors.
	Lenient bool
	// Start is the instant of time 0. Windows are counted from the epoch.
	Start  comporta.Instant
	Bursts []Burst
}

// A Report is what came of a scene.
type Report struct {
	Start  comporta.Instant
	Bursts []Burst
	Runs   []*Run
}

// A Run is what one algorithm answered.
type Run struct {
	Limit comporta.Limit
	// Notes say what was left out of the limit.
	Notes []string
	// Answers are one for each arrival, in order of time.
	Answers []Answer
	// Admitted is how many of each burst were allowed.
	Admitted []int
}

// An Answer is one arrival and the decision on it.
type Answer struct {
	// At is when it arrives, after time 0.
	At   time.Duration
	Cost int64
	comporta.Decision
}

// Leaves is when an allowed request goes on: where there is a delay, after it.
func (a *Answer) Leaves() time.Duration { return a.At + a.Delay }

// Total is the number of all arrivals, and of those that were admitted.
func (r *Run) Total() (arrived, admitted int) {
	for _, n := range r.Admitted {
		admitted += n
	}
	return len(r.Answers), admitted
}

// Play asks for each arrival in order of time. The error is that of a limit that
// does not compile. It costs time in proportion to the arrivals, for a sliding
// log times the length of the log.
func (s Scene) Play() (*Report, error) {
	report := &Report{Start: s.Start, Bursts: s.Bursts}
	all := arrivals(s.Bursts)
	for _, algorithm := range s.Algorithms {
		limit := s.Limit
		limit.Algorithm = algorithm
		run := &Run{Admitted: make([]int, len(s.Bursts)), Answers: make([]Answer, 0, len(all))}
		if s.Lenient {
			run.Notes = leaveOut(&limit)
		}
		rule, err := limit.Compile()
		if err != nil {
			return nil, err
		}
		run.Limit = rule.Limit()
		var k key
		for _, a := range all {
			d := k.take(rule, s.Start.Add(a.at), a.cost)
			if d.Allowed {
				run.Admitted[a.burst]++
			}
			run.Answers = append(run.Answers, Answer{a.at, a.cost, d.Decision})
		}
		report.Runs = append(report.Runs, run)
	}
	return report, nil
}

// leaveOut drops the numbers that the limit's algorithm has no use for.
func leaveOut(limit *comporta.Limit) (notes []string) {
	if limit.Burst != 0 && !limit.Algorithm.Bucket() {
		limit.Burst = 0
		notes = append(notes, "the burst is left out: it is for the two buckets")
	}
	if limit.MaxWait != 0 && limit.Algorithm != comporta.TokenBucket {
		limit.MaxWait = 0
		notes = append(notes, "the max wait is left out: it is for the token_bucket")
	}
	return notes
}
