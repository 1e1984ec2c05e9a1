package explain

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// An Explanation is what a policy would do with a request. Durations are in
// seconds; a time that never comes is null.
type Explanation struct {
	Request Asked  `json:"request"`
	Answer  Answer `json:"answer"`
	// Unproved are the kinds of credential that the request shows and that prove
	// nothing: unknown, expired, forged, meant for others.
	Unproved []string `json:"unproved,omitempty"`
	Limits   []Limit  `json:"limits"`
}

// Asked is the request as limits look at it.
type Asked struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	// Client is the address that limits per address go by.
	Client string `json:"client"`
}

// Answer is what the gateway would answer.
type Answer struct {
	Allowed bool `json:"allowed"`
	// Status is the status of a refusal; 0 where the upstream answers.
	Status int `json:"status,omitempty"`
	// Why is a refusal in words.
	Why string `json:"why,omitempty"`
	// RetryAfter is when the same request would pass, if nothing else comes.
	RetryAfter *float64 `json:"retry_after,omitempty"`
	// Delay is how long an allowed request waits.
	Delay float64 `json:"delay,omitempty"`
}

// Limit is one limit's part.
type Limit struct {
	Name string `json:"name"`
	// Applies says whether the request is under it; Why says why not.
	Applies bool   `json:"applies"`
	Why     string `json:"why,omitempty"`

	Part *Part `json:"part,omitempty"`
}

// Part is what a limit that applies has to say.
type Part struct {
	// Identity is whose budget it is; what clients sent is there only as a hash.
	Identity string `json:"identity"`
	// Numbers are the limit as it holds for this client, and From whose they are: the
	// limit's own, a plan's, an override's.
	Numbers   string `json:"numbers"`
	From      string `json:"from"`
	Algorithm string `json:"algorithm"`
	Mode      string `json:"mode"`
	Cost      int64  `json:"cost"`
	// Unlimited limits have no further numbers.
	Unlimited bool `json:"unlimited,omitempty"`
	// Full is what a full budget holds, Remaining what is left of it now.
	Full      int64 `json:"full"`
	Remaining int64 `json:"remaining"`
	// Passes says whether it lets the request pass; Blocked that it does not because
	// it denied the client before.
	Passes  bool `json:"passes"`
	Blocked bool `json:"blocked,omitempty"`
	// MoreAfter is when remaining grows, FullAfter when the budget is full again.
	MoreAfter  float64  `json:"more_after"`
	FullAfter  float64  `json:"full_after"`
	RetryAfter *float64 `json:"retry_after,omitempty"`
}

// Explain looks at a request under all limits of an engine.
func Explain(ctx context.Context, engine *policy.Engine, r *identity.Request) (*Explanation, error) {
	v := new(policy.Verdict)
	engine.Look(ctx, r, v)
	if v.Failed != nil {
		return nil, fmt.Errorf("the store cannot be asked: %w", v.Failed)
	}
	x := &Explanation{Request: Asked{r.Method, r.Path, clientOf(engine, r)}, Answer: answer(v), Limits: []Limit{}}
	for _, s := range v.Unproved {
		x.Unproved = append(x.Unproved, fmt.Sprint(s))
	}
	for _, l := range engine.Limits() {
		if a := find(v, l); a != nil {
			x.Limits = append(x.Limits, Limit{Name: l.Name, Applies: true, Part: part(a)})
		} else if !strings.HasSuffix(l.Name, ".outer") && l.Name != "preflight" { // with which most requests have nothing to do
			x.Limits = append(x.Limits, Limit{Name: l.Name, Why: whyNot(engine, l, r, v)})
		}
	}
	return x, nil
}

func clientOf(engine *policy.Engine, r *identity.Request) string {
	address := engine.Policy().Address
	if address == nil {
		address = new(identity.Address)
	}
	return address.Client(r).String()
}

func find(v *policy.Verdict, l *policy.Limit) *policy.Applied {
	i := slices.IndexFunc(v.Applied, func(a policy.Applied) bool { return a.Limit == l })
	if i < 0 {
		return nil
	}
	return &v.Applied[i]
}

func answer(v *policy.Verdict) Answer {
	a := Answer{Allowed: v.Allowed, Delay: v.Delay.Seconds()}
	switch {
	case v.Listed:
		a.Why = "a list lets it pass: no limit is asked"
	case v.Refused != nil:
		a.Status, a.Why = v.Refused.Status, v.Refused.Detail
	case !v.Allowed:
		a.Status = http.StatusTooManyRequests
		a.RetryAfter = Seconds(v.RetryAfter)
		var names []string
		for i := range v.Applied {
			if d := &v.Applied[i]; d.Denies() {
				names = append(names, d.Limit.Name)
				if d.Limit.Status != 0 {
					a.Status = d.Limit.Status
				}
			}
		}
		a.Why = "over " + strings.Join(names, " and ")
	}
	return a
}

// Seconds are those of a duration; nil is never.
func Seconds(d time.Duration) *float64 {
	if d == comporta.Never {
		return nil
	}
	s := d.Seconds()
	return &s
}

func part(a *policy.Applied) *Part {
	l, d := a.Rule.Limit(), &a.Decision
	p := &Part{
		Identity: a.Name, Numbers: l.String(), From: a.From, Algorithm: l.Algorithm.String(), Mode: mode(a),
		Cost: a.Cost, Unlimited: l.Unlimited, Passes: d.Allowed, Blocked: a.Blocked,
	}
	if p.Identity == "" {
		p.Identity = a.Identity
	}
	if l.Unlimited {
		return p
	}
	p.Full, p.Remaining = d.Limit, d.Remaining
	p.MoreAfter, p.FullAfter = d.ResetAfter.Seconds(), d.FullAfter.Seconds()
	if !d.Allowed {
		p.RetryAfter = Seconds(d.RetryAfter)
	}
	return p
}

// mode is what the limit does with what is over it.
func mode(a *policy.Applied) string {
	switch l := a.Limit; {
	case l.Mode == policy.Shadow:
		return "shadow"
	case l.OnLimit == policy.Mark:
		return "mark"
	case l.OnLimit == policy.Demote:
		return "demote"
	case a.Lenient:
		return fmt.Sprintf("shadow (enforced for %d%% of clients, not for this one)", l.Share)
	}
	return "enforce"
}

// whyNot says why a request is not under a limit.
func whyNot(engine *policy.Engine, l *policy.Limit, r *identity.Request, v *policy.Verdict) string {
	switch {
	case v.Listed:
		return "a list lets the request pass"
	case v.Refused != nil && v.Refused.Status == http.StatusForbidden:
		return "a list refuses the request"
	case v.Preflight:
		return "the request is a CORS preflight"
	case !engine.Matches(l, r):
		return "its patterns do not match"
	}
	if l.OnMissing == policy.Forbid && v.Refused != nil && v.Refused.Status == http.StatusUnauthorized {
		return fmt.Sprintf("who does not show %v is refused", l.Per)
	}
	return fmt.Sprintf("the request does not show %v", l.Per)
}
