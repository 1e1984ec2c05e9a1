package probe

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// A variation is another way to ask the same, of which a limit ought to make no
// difference.
type variation struct {
	name string
	r    Request
}

// attempts is how often a variation is tried before it is called unsettled.
const attempts = 3

// bypass asks in each variation while the identity is refused. One that passes
// between two refusals gets past the limit.
func (p *prober) bypass(variations []variation, holds, todo string) (Check, error) {
	var past, unsettled, elsewhere []string
	for _, v := range variations {
		settled := false
		for range attempts {
			if _, err := p.exhaust(); err != nil {
				return Check{}, err
			}
			s, err := p.session.Shoot(p.ctx, &v.r)
			if err != nil {
				return Check{}, err
			}
			if s.Denied() || s.Status == 0 {
				settled = true
				break
			}
			control, err := p.session.Shoot(p.ctx, nil)
			if err != nil {
				return Check{}, err
			}
			if !control.Denied() {
				continue // it gave back meanwhile
			}
			settled = true
			if s.Status < 400 {
				past = append(past, fmt.Sprintf("%s (%d)", v.name, s.Status))
			} else {
				elsewhere = append(elsewhere, fmt.Sprintf("%s (%d)", v.name, s.Status))
			}
			break
		}
		if !settled {
			unsettled = append(unsettled, v.name)
		}
	}
	var seen []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			seen = append(seen, what+": "+strings.Join(names, ", "))
		}
	}
	add("past the limit", past)
	add("not limited, and not answered either", elsewhere)
	add("it gives back too quickly to tell", unsettled)
	switch {
	case len(past) > 0:
		return Check{Verdict: Bad, Seen: strings.Join(seen, "; "), Todo: todo}, nil
	case len(unsettled) == len(variations):
		return Check{Verdict: Unknown, Seen: strings.Join(seen, "; ")}, nil
	}
	return Check{Verdict: Good, Seen: strings.Join(append([]string{holds}, seen...), "; ")}, nil
}

// addresses claims to be somebody else, in the fields that proxies set.
func (p *prober) addresses() (Check, error) {
	var all []variation
	for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip"} {
		all = append(all, variation{name, Request{Header: http.Header{name: {"203.0.113." + octet()}}}})
	}
	all = append(all,
		variation{"Forwarded", Request{Header: http.Header{"Forwarded": {"for=203.0.113." + octet()}}}},
		variation{"X-Forwarded-For, one IPv6 address", Request{Header: http.Header{"X-Forwarded-For": {"2001:db8:1:2::" + octet()}}}},
		variation{"X-Forwarded-For, its neighbour", Request{Header: http.Header{"X-Forwarded-For": {"2001:db8:1:2::" + octet()}}}},
	)
	return p.bypass(all, "none does", "believe these fields from your own proxies alone, take the rightmost address that is not one of them, and count IPv6 by /64")
}

// octet is 1 to 254.
func octet() string {
	var b [1]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprint(1 + int(b[0])%254)
}

// paths spells the path in other ways.
func (p *prober) paths() (Check, error) {
	u, err := url.Parse(p.options.Target.URL)
	if err != nil {
		return Check{Verdict: Unknown, Seen: "the URL cannot be varied"}, nil
	}
	var all []variation
	vary := func(name, path string) {
		if path == u.EscapedPath() || path == "" {
			return
		}
		other := *u
		other.RawPath = path
		if other.Path, err = url.PathUnescape(path); err == nil {
			all = append(all, variation{name + " " + path, Request{URL: other.String()}})
		}
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	vary("upper case", strings.ToUpper(path))
	vary("a slash more", strings.TrimSuffix(path, "/")+"/")
	vary("a double slash", "/"+path)
	vary("a dot segment", "/."+path)
	vary("a parameter", path+";x=1")
	if i := strings.IndexFunc(path, unicode.IsLetter); i > 0 {
		vary("an encoded letter", fmt.Sprintf("%s%%%02x%s", path[:i], path[i], path[i+1:]))
	}
	query := *u
	query.RawQuery = strings.TrimPrefix(u.RawQuery+"&probe="+octet(), "&")
	all = append(all, variation{"another query", Request{URL: query.String()}})
	return p.bypass(all, "none does", "match paths as the application reads them: one spelling of each, decoded once")
}

// keys asks with keys that nobody has: in place of the first identity's own, as
// long as they are.
func (p *prober) keys() (Check, error) {
	if len(p.options.Target.Identities) == 0 || len(p.options.Target.Identities[0]) == 0 {
		return Check{Verdict: Unknown, Seen: "there is no identity to make up: give one with -H"}, nil
	}
	var all []variation
	for i := range 2 {
		made := http.Header{}
		for name, values := range p.options.Target.Identities[0] {
			for _, v := range values {
				made.Add(name, madeUp(v))
			}
		}
		all = append(all, variation{fmt.Sprintf("made-up key %d", i+1), Request{Identity: -1, Header: made}})
	}
	all = append(all, variation{"no key at all", Request{Identity: -1}})
	return p.bypass(all, "none does", "count by keys that exist alone, and all others by address, or refuse them")
}

// madeUp is a value of the same form: digits and letters by chance, the first word
// of several, such as Bearer, as it is.
func madeUp(value string) string {
	scheme, key, several := strings.Cut(value, " ")
	if !several {
		scheme, key = "", value
	}
	random := make([]byte, len(key))
	rand.Read(random) // never fails
	out := []byte(key)
	for i, c := range out {
		switch {
		case c >= '0' && c <= '9':
			out[i] = '0' + random[i]%10
		case c >= 'a' && c <= 'z':
			out[i] = 'a' + random[i]%26
		case c >= 'A' && c <= 'Z':
			out[i] = 'A' + random[i]%26
		}
	}
	return strings.TrimPrefix(scheme+" "+string(out), " ")
}

// methods asks with methods that may be handled before the limit.
func (p *prober) methods() (Check, error) {
	c, err := p.bypass([]variation{{"HEAD", Request{Method: http.MethodHead}}}, "HEAD does not", "count HEAD as GET")
	if err != nil || c.Verdict == Bad {
		return c, err
	}
	if _, err := p.exhaust(); err != nil {
		return Check{}, err
	}
	s, err := p.session.Shoot(p.ctx, &Request{Method: http.MethodOptions})
	if err != nil {
		return Check{}, err
	}
	if s.Denied() {
		c.Seen += "; OPTIONS counts, too"
	} else {
		c.Seen += fmt.Sprintf("; OPTIONS passes (%d), as preflights of browsers must", s.Status)
	}
	return c, nil
}

// cors asks as a browser on another origin would.
func (p *prober) cors() (Check, error) {
	const origin = "https://probe.example"
	if _, err := p.exhaust(); err != nil {
		return Check{}, err
	}
	from := http.Header{"Origin": {origin}}
	denied, err := p.session.Shoot(p.ctx, &Request{Header: from})
	if err != nil {
		return Check{}, err
	}
	if !denied.Denied() {
		return Check{Verdict: Unknown, Seen: "it gives back too quickly to tell"}, nil
	}
	preflight, err := p.session.Shoot(p.ctx, &Request{Method: http.MethodOptions, Identity: -1, Header: http.Header{
		"Origin": {origin}, "Access-Control-Request-Method": {"GET"},
	}})
	if err != nil {
		return Check{}, err
	}
	allowed := func(s *Shot) bool { return s.Header.Get("Access-Control-Allow-Origin") != "" }
	exposes := strings.ToLower(strings.Join(denied.Header.Values("Access-Control-Expose-Headers"), ","))
	switch {
	case preflight.Denied():
		return Check{Verdict: Bad, Seen: "a preflight is refused with the client's own requests", Todo: "leave preflights alone, or limit them by themselves: browsers send them without the key"}, nil
	case !allowed(&preflight) && !allowed(&denied):
		return Check{Verdict: Unknown, Seen: "it answers no other origin, " + origin + " at least"}, nil
	case !allowed(&denied):
		return Check{Verdict: Bad, Seen: "refusals have no Access-Control-Allow-Origin", Todo: "put the CORS fields on refusals, too: scripts see a network error else"}, nil
	case !strings.Contains(exposes, "retry-after"):
		return Check{Verdict: Warn, Seen: "scripts may read refusals, but not Retry-After", Todo: "send Access-Control-Expose-Headers: Retry-After, and the rate-limit fields"}, nil
	}
	return Check{Verdict: Good, Seen: "scripts may read refusals and Retry-After"}, nil
}
