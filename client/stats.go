package client

import (
	"maps"
	"time"
)

// Stats are counts since the Transport was made.
type Stats struct {
	// Attempts sent, and Retries among them. Resent is how often net/http itself sent
	// one anew on another connection.
	Attempts, Retries, Resent uint64
	// Refused attempts (429), Overloaded ones (503) and Failed ones.
	Refused, Overloaded, Failed uint64
	// Waits, and how long they took together; Waiting in line now.
	Waits   uint64
	Waited  time.Duration
	Waiting int
	// Gates that were shut. Declined requests were not sent, Abandoned ones not again,
	// by reason.
	Gates     uint64
	Declined  map[Reason]uint64
	Abandoned map[Reason]uint64
}

func newStats() Stats {
	return Stats{Declined: map[Reason]uint64{}, Abandoned: map[Reason]uint64{}}
}

// count counts an attempt, by its number in its call.
func (s *Stats) count(attempt int, kind Kind) {
	s.Attempts++
	if attempt > 1 {
		s.Retries++
	}
	switch kind {
	case Refused:
		s.Refused++
	case Overloaded:
		s.Overloaded++
	case Failed:
		s.Failed++
	}
}

// Stats are the counts so far.
func (c *Caller) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Declined, s.Abandoned = maps.Clone(s.Declined), maps.Clone(s.Abandoned)
	return s
}
