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
