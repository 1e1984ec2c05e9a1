package client

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// prefixes are what the names of fields begin with that say one thing each:
// RateLimit-Limit (drafts to −06), X-RateLimit-Reset-Tokens (OpenAI), X-Rate-Limit-Limit
// (X, Okta), Anthropic-RateLimit-Requests-Remaining.
var prefixes = []string{"ratelimit-", "x-ratelimit-", "x-rate-limit-", "rate-limit-", "anthropic-ratelimit-"}

// A group is the fields of one budget: those whose names differ in what they say
// alone.
type group struct{ limit, remaining, used, reset, resetAfter, policy string }

// said are the words for what a field says, longest first.
var said = []struct {
	word string
	of   func(*group) *string
}{
	{"reset-after", func(g *group) *string { return &g.resetAfter }}, // Discord
	{"remaining", func(g *group) *string { return &g.remaining }},
	{"limit", func(g *group) *string { return &g.limit }},
	{"reset", func(g *group) *string { return &g.reset }},
	{"used", func(g *group) *string { return &g.used }}, // GitHub, Reddit
}

// windows are the words for windows that Kong puts into names.
var windows = map[string]time.Duration{
	"second": time.Second, "minute": time.Minute, "hour": time.Hour,
	"day": 24 * time.Hour, "month": 30 * 24 * time.Hour, "year": 365 * 24 * time.Hour,
}

// namedHints reads fields that say one thing each.
func namedHints(f fields, date time.Time) (hints []Hint) {
	for _, prefix := range prefixes {
		groups := map[string]*group{}
		for name, value := range f {
			rest, ok := strings.CutPrefix(name, prefix)
			if !ok {
				continue
			}
			for _, s := range said {
				if of, ok := without(rest, s.word); ok {
					if groups[of] == nil {
						groups[of] = &group{}
					}
					*s.of(groups[of]) = value
					break
				}
			}
		}
		for _, of := range slices.Sorted(maps.Keys(groups)) {
			g := groups[of]
			g.policy = f[prefix+"policy"]
			if h, ok := g.hint(date); ok {
				h.Dialect = strings.TrimSuffix(prefix, "-")
				h.Policy, h.Unit = of, "requests"
				if w, ok := windows[of]; ok {
					h.Window = w
				} else if of != "" && of != "requests" {
					h.Unit = of
				}
				if name := f[prefix+"bucket"] + f[prefix+"resource"]; of == "" && len(name) <= 100 {
					h.Policy = name
				}
				hints = append(hints, h)
			}
		}
	}
	return hints
}

// without is a name without a word at its beginning or its end.
func without(name, word string) (string, bool) {
	if name == word {
		return "", true
	}
	if rest, ok := strings.CutPrefix(name, word+"-"); ok {
		return rest, true
	}
	return strings.CutSuffix(name, "-"+word)
}

// hint reads a group; what is there must be well-formed.
func (g *group) hint(date time.Time) (h Hint, ok bool) {
	h = Hint{Limit: -1, Remaining: -1, Reset: -1, Window: -1}
	if g.limit != "" {
		if h.Limit, h.Window, ok = readLimit(g.limit, g.policy); !ok {
			return h, false
		}
	}
	switch {
	case g.remaining != "":
		if h.Remaining, ok = units(g.remaining); !ok {
			return h, false
		}
	case g.used != "" && h.Limit >= 0:
		used, ok := units(g.used)
		if !ok {
			return h, false
		}
		h.Remaining = max(h.Limit-used, 0)
	}
	switch {
	case g.resetAfter != "":
		n, ok := decimal(g.resetAfter)
		if !ok {
			return h, false
		}
		h.Reset = seconds(n)
	case g.reset != "":
		if h.Reset, ok = readReset(g.reset, date); !ok {
			return h, false
		}
	}
	return h, true
}

// units reads a count: whole, or what is left of it.
func units(text string) (int64, bool) {
	n, ok := decimal(text)
	if !ok || n > maxUnits {
		return 0, false
	}
	return int64(n), true
}

// readLimit reads a limit with the policies that may stand behind it (10,
// 10;w=1;name="per-ip", 1000;w=3600) or in a field of their own (100;w=60): the
// window is that of the policy with this limit.
func readLimit(text, policy string) (limit int64, window time.Duration, ok bool) {
	head, _, _ := strings.Cut(text, ",")
	head, _, _ = strings.Cut(head, ";")
	if limit, ok = units(strings.TrimSpace(head)); !ok {
		return 0, 0, false
	}
	for _, value := range []string{text, policy} {
		list, err := httpsfv.UnmarshalList([]string{value})
		if err != nil {
			continue
		}
		for _, member := range list {
			item, _ := member.(httpsfv.Item)
			if q, ok := item.Value.(int64); !ok || q != limit {
				continue
			}
			for _, key := range []string{"w", "window"} { // as polli-00 spells it
				if w, ok := integer(item.Params, key); ok && w > 0 {
					return limit, seconds(float64(w)), true
				}
			}
		}
	}
	return limit, -1, true
}

// readReset reads a time until a reset: seconds, seconds or milliseconds since
// 1970, a date, or a duration as Go prints it. A number that may be milliseconds
// as well as seconds (some send 1000 for a second) is taken for seconds: too long
// a time is the smaller mistake.
func readReset(text string, date time.Time) (time.Duration, bool) {
	if n, ok := decimal(text); ok {
		switch {
		case n < firstDate:
			return seconds(n), true
		case n < 1e11:
			return until(time.Unix(0, int64(n*1e9)), date), true
		case n < 1e14:
			return until(time.Unix(0, int64(n*1e6)), date), true
		}
		return 0, false
	}
	if at, ok := parseDate(text, date); ok {
		return until(at, date), true
	}
	d, ok := goDuration(text)
	return d, ok
}

// until is the time to an instant that was told, in whole microseconds; none
// where it is past.
func until(at, date time.Time) time.Duration {
	d := min(max(at.Sub(date), 0), 2*farthest) // Sub saturates
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}
