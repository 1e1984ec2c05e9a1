package policy

import (
	"math"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
)

// A Verdict is the answer to one request: what each limit decided and what
// becomes of it. The zero Verdict is ready for Check, and may be used again: its
// memory then serves the next request.
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
	// Refused is why the request is refused where it is not for a limit: a list
	// denies it, its body cannot be read, it shows no identity where one is asked
	// for. Applied are then the limits that were asked before that, if any.
	Refused *identity.RequestError
	// Listed says that a list let the request pass; no limit was asked.
	Listed bool
	// Unproved are the sources whose credential was shown and proves nothing.
	Unproved []identity.Source
	// Failed is the store's error, when it could not answer.
	Failed error
	// Fallen is which way the verdict then fell: Deny where one of the limits asks
	// for that, and the request is refused, which is not the client's doing; Local
	// where [Options.Local] decided under at least one of them; else Allow. It is
	// Default where nothing failed, and where the request's own context had ended:
	// that nobody waits for an answer is no reason to let it pass uncounted, so it
	// is refused.
	Fallen OnError
}

// Applied is one limit's part in a verdict.
type Applied struct {
	Limit *Limit
	Rule  *comporta.Rule
	// Decision is the limit's own. That of a shadow limit may deny a request that
	// is allowed.
	Decision comporta.Decision
	// Identity is whose budget it was, as stored; Name is what operators call the
	// client, which is never a secret.
	Identity, Name string
	// From says whose numbers they are: "limit", "plan pro", "override (line 80)".
	From string
	// Cost is what was asked for, Receipt what was spent, for settling.
	Cost    int64
	Receipt comporta.Receipt
	// Lenient says that the limit refuses this request nothing: it is in shadow, for
	// all or for this client, or it marks or demotes what is over it.
	Lenient bool
	// Blocked says that the client is denied for what it did before ([Limit.Block]).
	Blocked bool
	// Warned says that with this request the client's use passed Limit.WarnAt.
	Warned bool
	// Shown says that headers and bodies may tell of it.
	Shown bool
	// Fallen is Default where the store decided. Where it could not it is Local, and
	// Rule and Decision are those of this instance's share; or else nobody decided:
	// the decision is empty, but for Allowed, and not shown.
	Fallen OnError

	shadow bool // Lenient for the limit's mode or share
}

// Denies says whether the limit refuses the request.
func (a *Applied) Denies() bool { return !a.Decision.Allowed && !a.Lenient }

// Marks says whether the upstream is to be told that the request is over the
// limit, Demotes whether it is to come after others.
func (a *Applied) Marks() bool   { return a.over(Mark) }
func (a *Applied) Demotes() bool { return a.over(Demote) }

// over says whether the request is over an enforced limit that does o.
func (a *Applied) over(o OnLimit) bool {
	return !a.Decision.Allowed && a.Limit.OnLimit == o && !a.shadow
}

// name finds the one limit that headers name, among those shown: on a denial
// the denying one with the longest retry, else the one with the least share
// left; ties to the longer reset, then to policy order. Unlimited ones do not
// compete.
func (v *Verdict) name() {
	v.Named = -1
	for i := range v.Applied {
		a := &v.Applied[i]
		if !a.Shown || a.Decision.Limit == math.MaxInt64 {
			continue
		}
		if v.Named < 0 || a.binds(&v.Applied[v.Named]) {
			v.Named = i
		}
	}
}

// binds says whether a is to be named rather than b, which comes before it.
func (a *Applied) binds(b *Applied) bool {
	mine, theirs := a.Decision, b.Decision
	mine.Allowed, theirs.Allowed = !a.Denies(), !b.Denies()
	return comporta.Stricter(mine, theirs)
}
