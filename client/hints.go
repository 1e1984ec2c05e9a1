package client

import (
	"net/http"
	"time"
)

// A Hint is what a response says of one policy's budget. It is no promise: what
// remains may be gone for other reasons.
type Hint struct {
	// Dialect names the form it came in: see the table in hints.
	Dialect string
	// Policy is its name, and Partition the part of it that this client is in; "" where
	// there is none.
	Policy, Partition string
	// Unit is "requests" unless said otherwise, as "tokens" or "content-bytes".
	Unit string
	// Limit and Remaining are −1 where they were not said.
	Limit, Remaining int64
	// Reset is the time from the response until more remains, Window the window of
	// Limit; −1 where they were not said.
	Reset, Window time.Duration
}

// Hints are what a response says of limits, in any dialect: none where it is
// malformed, absurd, from a cache (Age) or a redirect. received is when it came;
// absolute times are taken relative to its Date. It never fails.
func Hints(resp *http.Response, received time.Time) []Hint { return nil }

// RetryAfter is how long a response says to wait, by Retry-After or one of its
// kin; false where it says nothing that can be understood. received is when it
// came. A time past what a Duration holds is comporta.Never.
func RetryAfter(resp *http.Response, received time.Time) (wait time.Duration, told bool) {
	return retryAfterTmp(resp)
}
