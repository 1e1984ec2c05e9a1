package client

import (
	"net/http"
	"slices"
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
	maxFields = 256
	maxField  = 8 << 10
	maxName   = 100
	maxUnits  = 1e15
	farthest  = 400 * 24 * time.Hour
	firstDate = 1e9 // seconds: from here on, a number is an instant and no duration
)

// Hints are what a response says of limits, in any dialect: none where it is
// malformed, absurd, from a cache (Age) or a redirect. Where it contradicts itself
// on a policy, the lesser count is believed. received is when it came; absolute
// times are taken relative to its Date. It never fails, and gives at most 64.
func Hints(resp *http.Response, received time.Time) []Hint {
	f := fieldsOf(resp.Header)
	if f == nil || resp.StatusCode >= 300 && resp.StatusCode < 400 || stale(resp.Header) {
		return nil
	}
	date := dateOf(resp.Header, received)
	var kept []Hint
	for _, d := range dialects {
		for _, h := range d(f, date) {
			if h.sane() {
				kept = keep(kept, h)
			}
		}
	}
	return kept
}

// UntilMore is the wait that a refusal tells by what remains, where it tells no
// other: until there is more of what is used up.
func UntilMore(hints []Hint) (wait time.Duration, told bool) {
	for _, h := range hints {
		if h.Remaining == 0 && h.Reset >= 0 {
			wait, told = max(wait, h.Reset), true
		}
	}
	return wait, told
}

// keep adds a hint to those of other policies.
func keep(kept []Hint, h Hint) []Hint {
	for i := range kept {
		k := &kept[i]
		if k.Policy == h.Policy && k.Partition == h.Partition && k.Unit == h.Unit && k.Dialect == h.Dialect {
			if h.Remaining < k.Remaining {
				*k = h
			}
			return kept
		}
	}
	if len(kept) == maxHints {
		return kept
	}
	return append(kept, h)
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

// fieldsOf finds them under whatever spelling of their names; nil where there are
// none, or more than anybody needs.
func fieldsOf(h http.Header) fields {
	var names []string
	for name := range h {
		if (strings.Contains(name, "imit") || strings.Contains(name, "IMIT")) && len(name) <= maxName {
			if len(names) == maxFields {
				return nil
			}
			names = append(names, name)
		}
	}
	if names == nil {
		return nil
	}
	slices.Sort(names) // the same name twice, spelled differently, is joined in one order
	f := make(fields, len(names))
	for _, name := range names {
		lines, key := h[name], strings.ToLower(name)
		if before, twice := f[key]; twice {
			lines = append([]string{before}, lines...)
		}
		if value, ok := joined(lines); ok {
			f[key] = value
		} else {
			delete(f, key)
		}
	}
	return f
}

// joined are a field's lines as one, unless that is too long.
func joined(lines []string) (string, bool) {
	length := 0
	for _, line := range lines {
		if length += len(line) + len(", "); length > maxField {
			return "", false
		}
	}
	return strings.Trim(strings.Join(lines, ", "), " \t"), true
}

// stale says that a response is from a cache, and what it says was true earlier. Of
// several, the first counts; an Age that is none is ignored (RFC 9111, section 5.1).
func stale(h http.Header) bool {
	age, _, _ := strings.Cut(first(h, "Age"), ",")
	age = strings.Trim(age, " \t")
	return digits(age) && strings.Trim(age, "0") != ""
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

// seconds is a duration of so many, 0 or more; not a sane one where they are absurd.
func seconds(n int64) time.Duration { return number{whole: n}.of(time.Second) }

// shopifyHints reads how full a shop's leaky bucket is: 32/40. Whatever the shop pays
// for, a full one runs empty in 20 seconds: 40 by two a second, 400 by twenty. Reset
// is when it will be empty, so that what remains, spread over it, settles at the
// rate; once nothing remains, it is when there is room for one.
func shopifyHints(f fields, _ time.Time) []Hint {
	const empties = 20 * time.Second
	used, size, _ := strings.Cut(f["x-shopify-shop-api-call-limit"], "/")
	u, ok1 := units(strings.Trim(used, " \t"))
	s, ok2 := units(strings.Trim(size, " \t"))
	if !ok1 || !ok2 || s < 1 || s > 1e6 {
		return nil
	}
	h := Hint{Dialect: "x-shopify", Unit: "requests", Limit: s, Remaining: max(s-u, 0), Window: empties}
	h.Reset = micros(empties / time.Duration(s) * time.Duration(s-h.Remaining))
	if h.Remaining == 0 {
		h.Reset = micros(empties / time.Duration(s))
	}
	return []Hint{h}
}
