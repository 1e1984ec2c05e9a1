package client

import (
	"net/http"
	"time"
)

// A Reason says why a request was not sent, or not sent again.
type Reason string

const (
	// Not sent:
	ReasonGate     Reason = "gate"     // the server said not to call before RetryAfter is over
	ReasonLine     Reason = "line"     // too many wait already, or the wait would be too long
	ReasonLimit    Reason = "limit"    // the outbound limit does not allow it in time
	ReasonThrottle Reason = "throttle" // adaptive throttling: the server refuses most
	// Sent, and not again:
	ReasonTooLong   Reason = "too-long"  // the time told is over MaxWait
	ReasonDeadline  Reason = "deadline"  // the time told is past the context's deadline
	ReasonAttempts  Reason = "attempts"  // all attempts were used
	ReasonBudget    Reason = "budget"    // the budget of retries is spent
	ReasonUnsafe    Reason = "unsafe"    // the server may have acted, or the body cannot be sent twice
	ReasonForbidden Reason = "forbidden" // the server said not to try again
)

// A RateLimitError says why a request was not sent, or why the response that
// came with it is the last one. It is an error of RoundTrip only where nothing
// was sent; of a response, GaveUp has it.
type RateLimitError struct {
	Host   string
	Reason Reason
	// RetryAfter is the time to wait, from when the error was made; 0 where it is not
	// known.
	RetryAfter time.Duration
	// Attempts is how often the request was sent.
	Attempts int
	// Err is what else went wrong, such as the outbound limit's store; mostly nil.
	Err error
}

// GaveUp says why a response that came through a Transport is a refusal or failure
// that was not tried again, and how long the server said to wait. It is nil for
// one that was accepted.
func GaveUp(resp *http.Response) *RateLimitError { panic("todo") }
