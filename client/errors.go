package client

import (
	"net/http"
	"time"

	"github.com/comporta/comporta"
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
	ReasonUnsafe    Reason = "unsafe"    // the server may have acted, the body cannot be sent twice, or the caller retries itself
	ReasonForbidden Reason = "forbidden" // the server said not to try again
	ReasonFinal     Reason = "final"     // it would fail again
)

// says is what a reason means, in an error's words.
var says = map[Reason]string{
	ReasonGate:      "not sent, since the server said not to call yet",
	ReasonLine:      "not sent, since too many are in line before it",
	ReasonLimit:     "not sent, since the outbound limit does not allow it",
	ReasonThrottle:  "not sent, since the server refuses most requests",
	ReasonTooLong:   "not sent again, since the server said to wait longer than MaxWait",
	ReasonDeadline:  "not sent again, since the context would end before",
	ReasonAttempts:  "not sent again, since all attempts were used",
	ReasonBudget:    "not sent again, since the budget of retries is spent",
	ReasonUnsafe:    "not sent again, since the server may have acted on it, or it cannot or must not be sent twice",
	ReasonForbidden: "not sent again, since the server said so",
	ReasonFinal:     "not sent again, since it would fail again",
}

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

// Error says what happened, and when to come again.
func (e *RateLimitError) Error() string {
	text := "client: " + e.Host + ": " + says[e.Reason]
	switch {
	case e.RetryAfter == comporta.Never:
		text += "; it is never to be sent again"
	case e.RetryAfter > 0:
		text += "; try again after " + e.RetryAfter.Round(time.Millisecond).String()
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *RateLimitError) Unwrap() error { return e.Err }

type gaveUp struct{}

// GaveUp says why a response that came through a Transport is a refusal or failure
// that was not tried again, and how long the server said to wait. It is nil for
// one that was accepted.
func GaveUp(resp *http.Response) *RateLimitError {
	if resp == nil || resp.Request == nil {
		return nil
	}
	why, _ := resp.Request.Context().Value(gaveUp{}).(*RateLimitError)
	return why
}
