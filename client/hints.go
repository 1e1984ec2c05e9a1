package client

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// A Hint is what a response says of one policy's budget. It is no promise: what
// remains may be gone for other reasons.
type Hint struct {
	// Dialect names the form it came in: "ratelimit" and "ratelimit-dictionary" of the
	// drafts, else the beginning of its fields' names, such as "x-ratelimit".
	Dialect string
	// Policy is its name, and Partition the part of it that this client is in; "" where
	// there is none.
	Policy, Partition string
	// Unit is "requests" unless said otherwise, as "tokens" or "content-bytes".
	Unit string
	// Limit and Remaining are −1 where they were not said.
	Limit, Remaining int64
	// Reset is the time from the response until more remains, Window the window of
	// Limit; −1 where they were not said.
	Reset, Window time.Duration
}

const (
	// What is past these is a mistake, or meant to harm.
	maxHints  = 64
	maxField  = 8 << 10
	maxUnits  = 1e15
	farthest  = 400 * 24 * time.Hour
	firstDate = 1e9 // seconds: from here on, a number is an instant and no duration
)

// Hints are what a response says of limits, in any dialect: none where it is
// malformed, absurd, from a cache (Age) or a redirect. received is when it came;
// absolute times are taken relative to its Date. It never fails.
func Hints(resp *http.Response, received time.Time) []Hint {
	f := fieldsOf(resp.Header)
	if f == nil || resp.StatusCode >= 300 && resp.StatusCode < 400 || stale(resp.Header) {
		return nil
	}
	date := dateOf(resp.Header, received)
	var hints []Hint
	for _, d := range dialects {
		hints = append(hints, d(f, date)...)
	}
	kept := hints[:0]
	for _, h := range hints {
		if h.sane() && len(kept) < maxHints {
			kept = append(kept, h)
		}
	}
	return kept
}

// dialects are the forms in which servers say what remains. Each reads its own
// fields, of all those whose names speak of limits.
var dialects = []func(f fields, date time.Time) []Hint{
	draftHints,   // RateLimit and RateLimit-Policy: drafts −07 to −12
	namedHints,   // RateLimit-Limit, X-RateLimit-Remaining-Requests and their like
	shopifyHints, // X-Shopify-Shop-Api-Call-Limit
}

// fields are those of a response that speak of limits, by their names in lower
// case, with their lines joined.
type fields map[string]string

func fieldsOf(h http.Header) (f fields) {
	for name, lines := range h {
		if !strings.Contains(name, "imit") && !strings.Contains(name, "IMIT") || len(name) > 100 {
			continue
		}
		value := strings.Join(lines, ", ")
		if len(value) > maxField {
			continue
		}
		if f == nil {
			f = fields{}
		}
		f[strings.ToLower(name)] = strings.Trim(value, " \t")
	}
	return f
}

// stale says that a response is from a cache, and what it says was true earlier.
func stale(h http.Header) bool {
	age := strings.TrimSpace(first(h, "Age"))
	return age != "" && strings.Trim(age, "0") != ""
}

// sane says whether a hint says anything, and nothing absurd.
func (h *Hint) sane() bool {
	switch {
	case h.Limit < 0 && h.Remaining < 0:
		return false
	case h.Limit > maxUnits || h.Remaining > maxUnits:
		return false
	case h.Reset > farthest || h.Window > farthest:
		return false
	}
	return true
}

// seconds is a duration of so many, −1 where that is absurd.
func seconds(n float64) time.Duration {
	if !(n >= 0) || n > 2*farthest.Seconds() {
		return 2 * farthest // not sane
	}
	return time.Duration(math.Ceil(n*1e6)) * time.Microsecond
}

// shopifyHints reads how full a shop's leaky bucket is: 32/40. It leaks two a
// second unless the shop pays for more.
func shopifyHints(f fields, _ time.Time) []Hint {
	used, size, ok := strings.Cut(f["x-shopify-shop-api-call-limit"], "/")
	u, ok1 := decimal(strings.TrimSpace(used))
	s, ok2 := decimal(strings.TrimSpace(size))
	if !ok || !ok1 || !ok2 || s > maxUnits || u > maxUnits || s < 1 {
		return nil
	}
	return []Hint{{
		Dialect: "x-shopify", Unit: "requests", Limit: int64(s), Remaining: int64(max(s-u, 0)),
		Reset: time.Duration(max(u, 1)/2*1e6) * time.Microsecond, Window: time.Duration(s/2*1e6) * time.Microsecond,
	}}
}
