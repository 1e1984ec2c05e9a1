package comporta

import (
	"math"
	"time"
)

// Never is the retry-after of a request that can never be allowed: its cost is
// over what a full budget holds.
const Never time.Duration = math.MaxInt64

// A Decision is the answer of one limit to one take. Durations run from the
// instant that counted and are rounded up to whole microseconds.
type Decision struct {
	// Allowed says that the request may go on, after Delay.
	Allowed bool
	// Limit is what a full budget holds.
	Limit int64
	// Remaining is the number of whole units left, after this take; never negative.
	Remaining int64
	// ResetAfter is the time until Remaining grows by at least one; 0 when the budget is full.
	ResetAfter time.Duration
	// FullAfter is the time until the budget is full again, if nothing more is taken.
	FullAfter time.Duration
	// RetryAfter is 0 when allowed; else the time until this same request would
	// be allowed, if nothing more is taken; or Never.
	RetryAfter time.Duration
	// Delay is how long an allowed request waits before it goes on.
	Delay time.Duration
}

// Taken is the decision on one take of a step, and what else the step tells of it.
type Taken struct {
	Decision
	// AskAgain is the time until this same request would be allowed as the budget
	// stands after this take. It differs from RetryAfter in one case: a limit that
	// charges attempts, allowed this one and was charged, while another limit of
	// the same request denied it.
	AskAgain time.Duration
	// Receipt names what was spent, for a later settle; the zero Receipt if nothing was.
	Receipt Receipt
}

// tellRetry makes the retry what asking again takes, where the take was denied.
func (d *Taken) tellRetry() {
	if !d.Allowed {
		d.RetryAfter = d.AskAgain
	}
}

// A Receipt names an allowed take, so that it can be settled: the instant at
// which it counted, what it cost, and its place in the order of a leaky bucket.
type Receipt struct {
	At    Instant
	Cost  int64
	Place Instant
}

// Stricter says whether a binds more than b: a denial before an allowance, the
// longer retry among denials, the smaller share of a full budget left among
// allowances; then the longer reset. Equals are not stricter: the earlier in
// policy order stays.
func Stricter(a, b Decision) bool {
	if a.Allowed != b.Allowed {
		return !a.Allowed
	}
	if !a.Allowed && a.RetryAfter != b.RetryAfter {
		return a.RetryAfter > b.RetryAfter
	}
	if unlimited := int64(math.MaxInt64); a.Limit == unlimited || b.Limit == unlimited {
		return a.Limit < b.Limit // it never competes
	}
	if a.Allowed {
		// remaining / limit, compared as fractions; 0 when the limit is 0.
		left, right := share(a, b), share(b, a)
		if left != right {
			return left.less(right)
		}
	}
	return a.ResetAfter > b.ResetAfter
}

// share is a's remaining over its limit, times both limits.
func share(a, b Decision) wide {
	if a.Limit == 0 || b.Limit == 0 {
		if a.Limit == 0 || a.Remaining == 0 {
			return wide{}
		}
		return wide{lo: 1} // more than b's 0 of 0
	}
	return mul(uint64(a.Remaining), uint64(b.Limit))
}
