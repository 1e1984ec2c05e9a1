package client

import "time"

// A Happening is what an Event tells of.
type Happening string

const (
	Attempt   Happening = "attempt"   // an attempt was answered, or failed
	Wait      Happening = "wait"      // a request begins to wait, for Wait
	GateShut  Happening = "gate"      // the gate of a host is shut, for Wait
	Learnt    Happening = "learnt"    // a response said what remains
	Declined  Happening = "declined"  // a request was not sent, for Reason
	Abandoned Happening = "abandoned" // a request is not sent again, for Reason
)

// An Event is one thing that happened to one request.
type Event struct {
	What      Happening
	Host      string
	Partition string
	// Attempt is its number, from 1.
	Attempt int
	// Status of an answer; 0 where there was none, or what carries it has no status.
	Status int
	Wait   time.Duration
	Reason Reason
	Err    error
}

// Stats are counts since the Transport was made.
type Stats struct {
	// Attempts sent, and Retries among them. Resent is how often net/http itself sent
	// one anew on another connection.
	Attempts, Retries, Resent uint64
	// Refused attempts (429), Overloaded ones (503) and Failed ones.
	Refused, Overloaded, Failed uint64
	// Waits, and how long they took together; Waiting now.
	Waits   uint64
	Waited  time.Duration
	Waiting int
	// Gates that were shut. Declined requests were not sent, Abandoned ones not again,
	// by reason.
	Gates     uint64
	Declined  map[Reason]uint64
	Abandoned map[Reason]uint64
}
