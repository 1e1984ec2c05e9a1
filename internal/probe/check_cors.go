package probe

import (
	"fmt"
	"net/http"
	"strings"
)

// strangers is an origin that no API knows by name.
const strangers = "https://probe.example"

// origin is the one that the user gave with -H Origin, and else a stranger's.
func (p *prober) origin() string {
	t := &p.options.Target
	for _, h := range append([]http.Header{t.Header}, t.Identities...) {
		if origin := h.Get("Origin"); origin != "" {
			return origin
		}
	}
	return strangers
}

// cors asks as a browser on another origin would: what passes, what is refused, and
// beforehand (a preflight, which has no key).
func (p *prober) cors() (Check, error) {
	origin := p.origin()
	from := &Request{Header: http.Header{"Origin": {origin}}}
	denied, err := p.exhaust(from)
	if err != nil {
		return Check{}, err
	}
	preflight, err := p.session.Shoot(p.ctx, &Request{Method: http.MethodOptions, Identity: -1, Header: http.Header{
		"Origin": {origin}, "Access-Control-Request-Method": {"GET"},
	}})
	if err != nil {
		return Check{}, err
	}
	served := allows(&preflight)
	for _, s := range p.session.Shots() {
		served = served || s.Admitted() && s.Request.Header.Get("Origin") == origin && allows(&s)
	}
	if !served && !allows(&denied) { // nothing passed perhaps: wait until something does
		if err := p.refill(); err != nil {
			return Check{}, err
		}
		passed, err := p.session.Shoot(p.ctx, from)
		if err != nil {
			return Check{}, err
		}
		served = allows(&passed)
	}
	exposes := strings.ToLower(strings.Join(denied.Header.Values("Access-Control-Expose-Headers"), ","))
	switch {
	case !served && !allows(&denied):
		return Check{Verdict: Unknown, Seen: "it serves no scripts of " + origin + ": where it serves others, give one with -H 'Origin: …'"}, nil
	case preflight.Denied():
		return Check{Verdict: Bad, Seen: "a preflight is refused with the client's own requests", Todo: "leave preflights alone, or limit them by themselves: browsers send them without the key"}, nil
	case !allows(&denied):
		return Check{Verdict: Bad, Seen: "scripts may read what passes, but refusals have no Access-Control-Allow-Origin", Todo: "put the CORS fields on refusals, too"}, nil
	case exposes != "*" && !strings.Contains(exposes, "retry-after"):
		return Check{Verdict: Warn, Seen: "scripts may read refusals, but not Retry-After", Todo: "send Access-Control-Expose-Headers: Retry-After, and the rate-limit fields"}, nil
	}
	c := Check{Verdict: Good, Seen: "scripts may read refusals and Retry-After, and preflights pass"}
	if !allows(&preflight) || preflight.Status >= 300 {
		c.Verdict, c.Seen = Warn, fmt.Sprintf("scripts may read refusals and Retry-After, but a preflight is not answered as one (%d)", preflight.Status)
		c.Todo = "answer OPTIONS with the CORS fields: browsers ask beforehand where a request has a key in a field of its own"
	}
	return c, nil
}

func allows(s *Shot) bool { return s.Header.Get("Access-Control-Allow-Origin") != "" }
