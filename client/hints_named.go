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
		groups := groupsOf(f, prefix)
		for _, of := range slices.Sorted(maps.Keys(groups)) {
			if h, ok := groups[of].hint(date); ok {
				h.Dialect = strings.TrimSuffix(prefix, "-")
				h.nameAfter(of, f[prefix+"bucket"]+f[prefix+"resource"])
				hints = append(hints, h)
			}
		}
	}
	return hints
}

// groupsOf are the groups of a prefix, by what their names have beside it and the
// word for what they say: "", "requests", "minute".
func groupsOf(f fields, prefix string) map[string]*group {
	groups := map[string]*group{}
	for name, value := range f {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		for _, s := range said {
			if of, ok := without(rest, s.word); ok {
				if groups[of] == nil {
					groups[of] = &group{policy: f[prefix+"policy"]}
				}
				*s.of(groups[of]) = value
				break
			}
		}
	}
	return groups
}

// nameAfter gives a hint its name, unit and window from its fields' names, and from
// the field that names what it is of (Discord's bucket, GitHub's resource). Kong has
// the window in them, others the unit, and some both: tokens-minute, req-minute.
func (h *Hint) nameAfter(of, resource string) {
	h.Unit = "requests"
	if of == "" {
		if resource != "" && len(resource) <= maxName {
			h.Policy = resource
		}
		return
	}
	h.Policy = of
	unit := of
	if cut := strings.LastIndexByte(of, '-'); windows[of[cut+1:]] > 0 {
		h.Window, unit = windows[of[cut+1:]], of[:max(cut, 0)]
	}
	switch unit = strings.TrimSuffix(unit, "-per"); unit {
	case "", "per", "requests", "request", "req":
	default:
		h.Unit = unit
	}
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
	if g.limit != "" && !h.readLimit(g.limit, g.policy) {
		return h, false
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
		h.Reset = n.of(time.Second)
	case g.reset != "":
		if h.Reset, ok = readReset(g.reset, date); !ok {
			return h, false
		}
	}
	return h, true
}

// units reads a count: whole, or what is whole of it.
func units(text string) (int64, bool) {
	n, ok := decimal(text)
	return n.whole, ok
}

// readLimit reads a limit with the policies that may stand behind it (10,
// 10;w=1;name="per-ip", 1000;w=3600) or in a field of their own (100;w=60): the
// window and the name are those of the policy with this limit.
func (h *Hint) readLimit(text, policy string) (ok bool) {
	head, _, _ := strings.Cut(text, ",")
	head, _, _ = strings.Cut(head, ";")
	if h.Limit, ok = units(strings.Trim(head, " \t")); !ok {
		return false
	}
	if h.Window, h.Policy = windowOf(h.Limit, text); h.Window < 0 {
		h.Window, h.Policy = windowOf(h.Limit, policy)
	}
	return true
}

// windowOf is the window of the policy with a limit, and its name; −1 where there
// is none.
func windowOf(limit int64, policies string) (window time.Duration, name string) {
	if !strings.Contains(policies, ";") {
		return -1, ""
	}
	list, err := httpsfv.UnmarshalList([]string{policies})
	if err != nil {
		return -1, ""
	}
	for _, member := range list {
		item, _ := member.(httpsfv.Item)
		if q, ok := item.Value.(int64); !ok || q != limit {
			continue
		}
		for _, key := range []string{"w", "window"} { // as polli-00 spells it
			if w := parameterOf(item.Params, key); w.valid && w.n > 0 {
				v, _ := item.Params.Get("name")
				if name, _ = textOf(v); len(name) > maxName {
					name = ""
				}
				return seconds(w.n), name
			}
		}
	}
	return -1, ""
}

// readReset reads a time until a reset: seconds, seconds or milliseconds since
// 1970, a date, or a duration as Go prints it. A number that may be milliseconds
// as well as seconds (Nuvemshop sends 1000 for a second) is taken for seconds: too
// long a time is the smaller mistake.
func readReset(text string, date time.Time) (time.Duration, bool) {
	if n, ok := decimal(text); ok {
		if n.whole < firstDate {
			return n.of(time.Second), true
		}
		at, ok := n.instant()
		return until(at, date), ok
	}
	if at, ok := parseDate(text, date); ok {
		return until(at, date), true
	}
	return goDuration(text)
}

// until is the time to an instant that was told, in whole microseconds; none
// where it is past.
func until(at, date time.Time) time.Duration { return micros(max(at.Sub(date), 0)) }
