package probe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/comporta/comporta"
)

// plain says that a request is the user's own, as the first identity.
func plain(r *Request) bool {
	return r.Identity == 0 && r.Method == "" && r.URL == "" && len(r.Header) == 0
}

// denials tells what was found of refusals that count.
func (p *prober) denials() (Check, error) {
	d := p.report.Finding.DenialsCount
	c := Check{Verdict: Unknown, Seen: d.Why}
	switch {
	case !d.Known:
	case d.Yes:
		c.Verdict = Warn
		c.Seen = "they do: " + d.Why
		c.Todo = "who retries too early stays locked out: charge admitted requests alone, unless that is meant"
	default:
		c.Verdict = Good
		c.Seen = "they do not: " + d.Why
	}
	if d.Known {
		c.Seen = fmt.Sprintf("%s (%.0f %% sure)", strings.TrimSuffix(c.Seen, "."), 100*d.Certainty)
	}
	return c, nil
}

// isolation uses up the first identity's budget, and asks as the second.
func (p *prober) isolation() (Check, error) {
	if len(p.options.Target.Identities) < 2 {
		return Check{Verdict: Unknown, Seen: "there is no second identity to ask as: give one with --second-identity"}, nil
	}
	if maps.EqualFunc(p.options.Target.Identities[0], p.options.Target.Identities[1], slices.Equal) {
		return Check{Verdict: Unknown, Seen: "the second identity is the same as the first: give another one with --second-identity"}, nil
	}
	way, s, err := p.aside(&Request{Identity: 1})
	switch {
	case err != nil:
		return Check{}, err
	case way == tooQuick:
		return Check{Verdict: Unknown, Seen: "it gives back too quickly to tell"}, nil
	case way == inside:
		return Check{Verdict: Bad, Seen: fmt.Sprintf("the second identity is refused (%d) once the first has used up its own; both ask from one address here", s.Status),
			Todo: "count each client apart: by key or user, and not by what they share, such as an address"}, nil
	case s.Status >= 400 && s.Status != p.watch.first:
		return Check{Verdict: Unknown, Seen: fmt.Sprintf("the second identity is not limited with the first, but not let in either (%d)", s.Status)}, nil
	}
	return Check{Verdict: Good, Seen: fmt.Sprintf("the second identity passes (%d) while the first is refused", s.Status)}, nil
}

// concurrency sends more than there is at once.
func (p *prober) concurrency() (Check, error) {
	return p.rush(&Request{}, "all at once", "decide and count in one step: a count that is read and then written lets through whoever comes between")
}

// instances does the same, each request on a connection of its own.
func (p *prober) instances() (Check, error) {
	return p.rush(&Request{Fresh: true}, "all at once, each on a connection of its own", "share the counts of all instances: behind a balancer each connection may meet another one")
}

// rushMost bounds the requests of one rush.
const rushMost = 400

// rush sends more than there is at once. Where a window may have begun meanwhile,
// it sends once more: that does not happen twice.
func (p *prober) rush(r *Request, how, todo string) (Check, error) {
	capacity := p.capacity()
	n := capacity + max(capacity/2, 10)
	if n > rushMost {
		return Check{Verdict: Unknown, Seen: fmt.Sprintf("it would take %d requests, more than a probe sends at once", n)}, nil
	}
	seen := ""
	for try := range 2 {
		if p.session.Left().Requests < n {
			return Check{}, ErrRequests
		}
		if err := p.refill(); err != nil {
			return Check{}, err
		}
		shots, err := p.session.Volley(p.ctx, n, r)
		if err != nil {
			return Check{}, err
		}
		passed, took := passedOf(shots)
		f := p.report.Finding
		// What it gives back while they arrive is no fault.
		most := capacity + 1 + int(p.givesBack(took+2*p.trip()))
		seen = fmt.Sprintf("%d requests %s: %d passed, of a budget of %d", n, how, passed, capacity)
		if passed <= most {
			return Check{Verdict: Good, Seen: seen}, nil
		}
		if f.Limit.Algorithm != comporta.FixedWindow || try == 1 {
			break
		}
	}
	return Check{Verdict: Bad, Seen: seen, Todo: todo}, nil
}

// passedOf counts the shots of a volley that passed, and says in how many seconds they
// were sent.
func passedOf(shots []Shot) (passed int, took float64) {
	for i := range shots {
		if shots[i].Admitted() {
			passed++
		}
		took = max(took, shots[i].Sent.Sub(shots[0].Sent).Seconds())
	}
	return passed, took
}
