package identity

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// MaxKey is the most bytes of an API key. What is longer is nobody's.
const MaxKey = 1024

// Places say where in a request its API key is looked for: in all that are named,
// which is at least one.
type Places struct {
	// Header is a header that holds the key alone, such as X-API-Key.
	Header string
	// Query is a parameter of the query, percent-encoded as in forms, where + is a
	// blank. Queries end up in logs: of the four places it is the last to choose.
	Query string
	// Cookie is the name of a cookie; quotation marks around its value are none of it.
	Cookie string
	// Bearer is Authorization: Bearer KEY (RFC 6750): the word in any case, with one
	// or more blanks behind it (RFC 9110, section 11.4). Of another scheme there is no key.
	Bearer bool
}

// checked is p with its names as requests have them, or what is wrong with it.
func (p Places) checked() (Places, error) {
	if p == (Places{}) {
		return p, errors.New("say where the key is looked for: in a header, a query parameter, a cookie, or as a bearer token")
	}
	if p.Cookie != "" {
		if _, err := headerName(p.Cookie); err != nil {
			return p, fmt.Errorf("%q is not a cookie's name: letters, digits, hyphens and underlines, as api_key", p.Cookie)
		}
	}
	if p.Header == "" {
		return p, nil
	}
	name, err := headerName(p.Header)
	switch {
	case err != nil:
		return p, err
	case name == "Host" || name == "Cookie":
		return p, fmt.Errorf("the %s header holds no key: name another one, as X-API-Key, or the cookie", name)
	case name == "Authorization" && p.Bearer:
		return p, errors.New("the Authorization header is read in one way: as a bearer token, or as a header that holds the key alone")
	}
	p.Header = name
	return p, nil
}

// find is the key that the request shows. One that is there several times is one;
// of several keys, or a place that is there twice and not the same, nobody knows
// which one is read behind us: the error is then ErrUnproved.
//
// It allocates only for a parameter with escapes.
func (p *Places) find(r *Request) (key string, shown bool, err error) {
	var f seenKey
	if p.Header != "" {
		for _, line := range r.Header[p.Header] {
			f.see(strings.Trim(line, " \t"))
		}
	}
	if p.Bearer {
		f.bearer(r.Header["Authorization"])
	}
	if p.Cookie != "" {
		for _, line := range r.Header["Cookie"] {
			f.cookies(line, p.Cookie)
		}
	}
	if p.Query != "" {
		f.query(r.Query, p.Query)
	}
	if f.err == nil && !keyForm(f.key) {
		f.err = errKeyForm
	}
	if f.err != nil || f.key == "" {
		return "", false, f.err
	}
	return f.key, true, nil
}

// keyForm says whether a text may be a key, or is empty: short enough, without
// blanks and control characters.
func keyForm(key string) bool {
	if len(key) > MaxKey {
		return false
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] == 0x7f {
			return false
		}
	}
	return true
}

// seenKey is what was seen so far in a request.
type seenKey struct {
	key string
	err error
}

func (f *seenKey) see(key string) {
	switch {
	case key == "" || key == f.key:
	case f.key == "":
		f.key = key
	default:
		f.err = errSeveralKeys
	}
}

// bearer looks at the lines of Authorization, of which a request has one.
func (f *seenKey) bearer(lines []string) {
	bearer, other := false, false
	for _, line := range lines {
		line = strings.Trim(line, " \t")
		scheme, rest, _ := strings.Cut(line, " ")
		if token := strings.TrimLeft(rest, " "); token != "" && strings.EqualFold(scheme, "Bearer") {
			bearer = true
			f.see(token)
		} else if line != "" {
			other = true
		}
	}
	if bearer && other {
		f.err = errSeveralKeys
	}
}

// cookies looks at a line of cookies (RFC 6265, section 4.2). Blanks before a value
// belong to it for some servers and not for others: it then proves nothing.
func (f *seenKey) cookies(line, name string) {
	for pair := range strings.SplitSeq(line, ";") {
		its, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if strings.TrimRight(its, " \t") != name {
			continue
		}
		if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		f.see(value)
	}
}

// query looks at a raw query. A value with an escape that is none,
// which servers read in different ways, proves nothing.
func (f *seenKey) query(raw, name string) {
	for pair := range strings.SplitSeq(raw, "&") {
		its, value, _ := strings.Cut(pair, "=")
		if its, err := unescape(its); err != nil || its != name {
			continue
		}
		value, err := unescape(value)
		if err != nil {
			f.err = errKeyForm
			return
		}
		f.see(value)
	}
}

func unescape(text string) (string, error) {
	if !strings.ContainsAny(text, "%+") {
		return text, nil
	}
	return url.QueryUnescape(text)
}
