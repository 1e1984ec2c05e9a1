package jwt

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// latest is the last second of the year 9999: a later date is none.
const latest = 253402300799

// claims is what a verified token says.
type claims struct {
	subject string
	plan    string // "" where there is none to be read
	from    time.Time
	until   time.Time // the first instant at which it is no longer valid
}

// readClaims reads the claims of a verified token, whose dates are widened by the
// leeway. It looks at no clock.
func (o *Options) readClaims(payload []byte) (c claims, err error) {
	object, ok := readObject(payload)
	if !ok {
		return c, errClaims
	}
	if o.Issuer != "" {
		if iss, ok := text(object["iss"]); !ok || iss != o.Issuer {
			return c, errIssuer
		}
	}
	if len(o.Audience) > 0 && !meant(object["aud"], o.Audience) {
		return c, errAudience
	}
	exp, ok := date(object["exp"])
	if !ok {
		return c, errExpiry
	}
	c.until = exp.Add(o.Leeway)
	if raw, there := object["nbf"]; there {
		nbf, ok := date(raw)
		if !ok {
			return c, errClaims
		}
		c.from = nbf.Add(-o.Leeway)
	}
	if c.subject, ok = subject(object[o.Claim]); !ok {
		return c, errSubject
	}
	if o.PlanClaim != "" {
		c.plan, ok = text(object[o.PlanClaim])
		if !ok || c.plan == "" || len(c.plan) > maxPlan || o.Plans != nil && !o.Plans(c.plan) {
			c.plan = o.UnknownPlan
		}
	}
	return c, nil
}

// meant says whether aud, a text or a list of texts, holds one of ours.
func meant(aud json.RawMessage, ours []string) bool {
	if one, ok := text(aud); ok {
		return slices.Contains(ours, one)
	}
	var list []json.RawMessage
	if json.Unmarshal(aud, &list) != nil {
		return false
	}
	return slices.ContainsFunc(list, func(value json.RawMessage) bool {
		one, ok := text(value)
		return ok && slices.Contains(ours, one)
	})
}

// date is a NumericDate: seconds since 1970, to the microsecond. A date that is none,
// before 1970 or after the year 9999 is not ok.
func date(value json.RawMessage) (time.Time, bool) {
	if whole, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return time.Unix(whole, 0), whole >= 0 && whole <= latest
	}
	if len(value) == 0 || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseFloat(string(value), 64)
	if err != nil || !(seconds >= 0 && seconds <= latest) {
		return time.Time{}, false
	}
	return time.UnixMicro(int64(math.Round(seconds * 1e6))), true
}

// subject is the user's name: a text, or a whole number's digits.
func subject(value json.RawMessage) (string, bool) {
	name, ok := text(value)
	if !ok {
		name = string(value)
		digits := strings.TrimPrefix(name, "-")
		if name == "-0" || strings.Trim(digits, "0123456789") != "" {
			return "", false
		}
	}
	return name, validSubject(name)
}

// validSubject refuses the mark of what was no Unicode: two names that were spoilt
// would be one.
func validSubject(name string) bool {
	return name != "" && len(name) <= MaxSubject && utf8.ValidString(name) && !strings.ContainsRune(name, utf8.RuneError)
}

// readObject reads one JSON object, and nothing after it. Names are kept letter by
// letter; one that is there twice, of which nobody knows which one others read, is
// not ok.
func readObject(data []byte) (map[string]json.RawMessage, bool) {
	if !utf8.Valid(data) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	object := make(map[string]json.RawMessage, 8)
	for d.More() {
		t, err := d.Token()
		name, is := t.(string)
		if _, twice := object[name]; err != nil || !is || twice {
			return nil, false
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil, false
		}
		object[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return object, err == io.EOF
}
