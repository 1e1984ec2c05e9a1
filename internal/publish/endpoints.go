package publish

import (
	"fmt"
	"slices"
	"strings"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// An endpoint is a pattern that a limit names; the zero endpoint is all others.
type endpoint struct{ pattern *policy.Pattern }

// endpoints are those that limits or costs name, exceptions too, in policy order,
// and all others.
func endpoints(limits []*policy.Limit) (out []endpoint) {
	add := func(p *policy.Pattern) {
		if p != nil && !slices.ContainsFunc(out, func(e endpoint) bool { return e.pattern.String() == p.String() }) {
			out = append(out, endpoint{p})
		}
	}
	for _, l := range limits {
		for _, p := range slices.Concat(l.Match, l.Except) {
			add(p)
		}
		for _, c := range l.Cost {
			add(c.Match)
		}
	}
	return append(out, endpoint{})
}

func (e endpoint) text() string {
	if e.pattern == nil {
		return "all others"
	}
	return "`" + e.pattern.String() + "`"
}

// under says whether requests of the endpoint are under a limit: whether it has
// no patterns, or one that says the same.
func (e endpoint) under(l *policy.Limit) bool {
	if e.pattern != nil && has(l.Except, e.pattern) {
		return false
	}
	return len(l.Match) == 0 || e.pattern != nil && has(l.Match, e.pattern)
}

func has(patterns []*policy.Pattern, p *policy.Pattern) bool {
	return slices.ContainsFunc(patterns, func(o *policy.Pattern) bool { return o.Covers(p) })
}

// cost is what one request of the endpoint costs under a limit, where it is not 1.
func (e endpoint) cost(l *policy.Limit) string {
	switch {
	case l.Estimate != nil:
		return "by the answer, under " + l.Name
	case l.CostHeader != nil:
		return "by the request, under " + l.Name
	}
	units, said := int64(0), false
	for _, c := range l.Cost {
		if c.Match == nil || e.pattern != nil && c.Match.Covers(e.pattern) {
			units, said = max(units, c.Units), true
		}
	}
	if !said || units == 1 {
		return ""
	}
	return fmt.Sprintf("%d under %s", units, l.Name)
}

// whose says whose budget a limit counts against.
func whose(s identity.Source) string {
	switch s := s.(type) {
	case identity.First:
		var said []string
		for _, part := range s {
			said = append(said, whose(part))
		}
		return strings.Join(said, ", else ")
	case identity.All:
		var said []string
		for _, part := range s {
			said = append(said, strings.TrimPrefix(whose(part), "per "))
		}
		return "per " + strings.Join(said, " and ")
	case *identity.Address:
		return "per address"
	case identity.Everyone:
		return "for all callers together"
	case identity.Header:
		return "per value of the header " + s.Name()
	case identity.Path:
		return "per {" + s.Name() + "} of the path"
	}
	switch name := s.String(); name {
	case "api_key":
		return "per API key"
	default:
		return "per " + strings.Trim(name, "{}")
	}
}
