package policy

import "github.com/comporta/comporta"

// A Verdict is the answer to one request: what each limit decided and what
// becomes of it. The zero Verdict is ready for Check, and may be used again.
type Verdict struct {
	// Outcome is whether the request may go on, when to retry, how long to wait.
	comporta.Outcome
	// Now is the instant of the answer, for headers that name a time of day.
	Now comporta.Instant
	// Applied are the limits that the request is under, in policy order.
	Applied []Applied
	// Named is the index in Applied of the one limit that headers name; −1 if none is shown.
	Named int
	// Preflight says that the request was a CORS preflight.
	Preflight bool
	// Failed is the store's error, when it could not answer; the request is then
	// allowed or not as the policy says for that.
	Failed error

	takes     []comporta.Take
	decisions []comporta.Decision
}

// Applied is one limit's part in a verdict.
type Applied struct {
	Limit    *Limit
	Rule     *comporta.Rule
	Decision comporta.Decision
	// Identity is whose budget it was, as stored.
	Identity string
	// Shown says that headers and bodies may tell of it.
	Shown bool
}
