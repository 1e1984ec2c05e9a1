package jwt

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/comporta/comporta/identity"
)

// A reason is why a token proves nothing. It is ErrUnproved and repeats nothing
// of the token.
type reason string

func (r reason) Error() string { return identity.ErrUnproved.Error() + ": " + string(r) }

func (r reason) Unwrap() error { return identity.ErrUnproved }

const (
	errSeveral   = reason("the request shows several")
	errForm      = reason("it is not a signed token")
	errLong      = reason("it is too long")
	errAlgorithm = reason("its algorithm is not taken")
	errCritical  = reason("it demands extensions")
	errNoKeys    = reason("there are no keys to verify it with")
	errKey       = reason("it was signed with no key that is known")
	errSignature = reason("its signature is not valid")
	errClaims    = reason("its claims cannot be read")
	errExpiry    = reason("it does not say when it expires")
	errExpired   = reason("it has expired")
	errEarly     = reason("it is not valid yet")
	errIssuer    = reason("somebody else issued it")
	errAudience  = reason("it is meant for somebody else")
	errSubject   = reason("it does not say whose it is")
)

// find is the one token that the request shows. An error goes with a token that can
// be told to be none without verifying it.
func (s *Source) find(r *identity.Request) (token string, shown bool, err error) {
	line := ""
	for _, l := range r.Header[s.o.Header] {
		l = strings.Trim(l, " \t")
		switch {
		case l == "" || l == line:
		case line == "":
			line = l
		default:
			return "", true, errSeveral
		}
	}
	token = line
	if s.o.Header == "Authorization" {
		scheme, rest, _ := strings.Cut(line, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", false, nil
		}
		token = strings.TrimLeft(rest, " ")
	}
	switch {
	case line == "":
		return "", false, nil
	case len(token) > MaxToken:
		return "", true, errLong
	case strings.Count(token, ".") != 2:
		return "", true, errForm
	}
	return token, true, nil
}

// parts are a token's three, of which signed is what the signature is over.
type parts struct {
	header    []byte
	signed    string
	payload   string // still encoded: it is read when the signature holds
	signature []byte
}

func split(token string) (p parts, ok bool) {
	first, rest, _ := strings.Cut(token, ".")
	payload, last, ok := strings.Cut(rest, ".")
	if !ok {
		return parts{}, false
	}
	p = parts{signed: token[:len(first)+1+len(payload)], payload: payload}
	if p.header, ok = decode(first); !ok {
		return parts{}, false
	}
	p.signature, ok = decode(last)
	return p, ok && len(p.signature) > 0
}

// decode reads base64url as RFC 7515 has it: no padding, no line ends, no bits
// left over, so that one token has one text.
func decode(text string) ([]byte, bool) {
	if strings.ContainsAny(text, "\r\n") { // which the package would skip
		return nil, false
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return data, err == nil
}

// header is what is read of a token before it is verified.
type header struct{ alg, kid string }

func readHeader(data []byte) (h header, err error) {
	o, ok := readObject(data)
	if !ok {
		return h, errForm
	}
	if _, critical := o["crit"]; critical {
		return h, errCritical // we know no extensions (RFC 7515, section 4.1.11)
	}
	if h.alg, ok = text(o["alg"]); !ok {
		return h, errAlgorithm
	}
	if kid, there := o["kid"]; there {
		if h.kid, ok = text(kid); !ok {
			return h, errForm
		}
	}
	return h, nil
}

// text is the text that a JSON value is.
func text(value json.RawMessage) (string, bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err == nil
}
