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

// bypass asks in each variation while the identity is refused. One that passes all
// the same gets past the limit; where it is answered otherwise than the user's own
// request, it leads elsewhere perhaps, and that is said.
func (p *prober) bypass(variations []variation, holds, todo string) (Check, error) {
	var past, quick, elsewhere, unanswered []string
	for _, v := range variations {
		way, s, err := p.aside(&v.r)
		if err != nil {
			return Check{}, err
		}
		name := fmt.Sprintf("%s (%d)", v.name, s.Status)
		switch {
		case way == inside:
		case way == tooQuick:
			quick = append(quick, v.name)
		case s.Status >= 300 && s.Status != p.watch.first: // of the user's own request
			unanswered = append(unanswered, name)
		case v.r.URL != "" && !p.alike(&s):
			elsewhere = append(elsewhere, name)
		default:
			past = append(past, name)
		}
	}
	var seen []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			seen = append(seen, what+": "+strings.Join(names, ", "))
		}
	}
	add("past the limit", past)
	add("past the limit, but with another answer, perhaps of something else", elsewhere)
	add("not limited, and not served either", unanswered)
	add("it gives back too quickly to tell", quick)
	switch {
	case len(past) > 0:
		return Check{Verdict: Bad, Seen: strings.Join(seen, "; "), Todo: todo}, nil
	case len(elsewhere) > 0:
		return Check{Verdict: Warn, Seen: strings.Join(seen, "; "), Todo: "look whether these reach the same: if so, " + todo}, nil
	case len(quick) == len(variations):
		return Check{Verdict: Unknown, Seen: strings.Join(seen, "; ")}, nil
	}
	return Check{Verdict: Good, Seen: strings.Join(append([]string{holds}, seen...), "; ")}, nil
}

// alike says that an answer is much like that to the user's own request: of the same
// status and type, and the same but for a tenth of its length.
func (p *prober) alike(s *Shot) bool {
	for _, own := range p.shots() {
		if !plain(own.Request) || !own.Admitted() {
			continue
		}
		a, b := len(own.Body), len(s.Body)
		return own.Status == s.Status && own.Header.Get("Content-Type") == s.Header.Get("Content-Type") && 10*max(a-b, b-a) <= max(a, b)+200
	}
	return true
}

// addresses claims to be somebody else, in the fields that proxies set.
func (p *prober) addresses() (Check, error) {
	var all []variation
	for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip"} {
		all = append(all, variation{name, Request{Header: http.Header{name: {"203.0.113." + octet()}}}})
	}
	all = append(all,
		variation{"Forwarded", Request{Header: http.Header{"Forwarded": {"for=203.0.113." + octet()}}}},
		variation{"Forwarded, IPv6", Request{Header: http.Header{"Forwarded": {`for="[2001:db8:1:2::` + octet() + `]"`}}}},
	)
	c, err := p.bypass(all, "none does", "believe these fields from your own proxies alone, take the rightmost address that is not one of them, and count IPv6 by /64")
	if err != nil {
		return c, err
	}
	return p.neighbours(c)
}

// neighbours uses up the limit of one IPv6 address and asks as the one next door,
// where an address can be claimed at all.
func (p *prober) neighbours(c Check) (Check, error) {
	const field = "X-Forwarded-For"
	if c.Verdict != Bad || !strings.Contains(c.Seen, field+" (") {
		c.Seen += "; so it cannot be told whether IPv6 neighbours count as one"
		return c, nil
	}
	net := fmt.Sprintf("2001:db8:%s%s:%s::", octet(), octet(), octet())
	one, other := &Request{Header: http.Header{field: {net + "1"}}}, &Request{Header: http.Header{field: {net + "2"}}}
	for range attempts {
		if _, err := p.exhaust(one); err != nil {
			return c, err
		}
		next, err := p.session.Shoot(p.ctx, other)
		if err != nil {
			return c, err
		}
		if next.Denied() {
			c.Seen += "; IPv6 neighbours count as one"
			return c, nil
		}
		control, err := p.session.Shoot(p.ctx, one)
		if err != nil {
			return c, err
		}
		if control.Denied() {
			c.Seen += "; an IPv6 neighbour, of the same /64, has a limit of its own"
			return c, nil
		}
	}
	return c, nil
}

// octet is a number of two digits, by chance: a part of an address.
func octet() string {
	var b [1]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprint(10 + int(b[0])%90)
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
		return Check{Verdict: Unknown, Seen: "there is no key to make up another of: give one with -H"}, nil
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
	if _, err := p.exhaust(nil); err != nil {
		return Check{}, err
	}
	s, err := p.session.Shoot(p.ctx, &Request{Method: http.MethodOptions})
	if err != nil {
		return Check{}, err
	}
	switch {
	case s.Denied():
		c.Seen += "; OPTIONS counts, too"
	case s.Status >= 400:
		c.Seen += fmt.Sprintf("; OPTIONS is not served (%d)", s.Status)
	default:
		c.Seen += fmt.Sprintf("; OPTIONS passes (%d), as preflights of browsers must", s.Status)
	}
	return c, nil
}
