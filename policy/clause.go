package policy

import (
	"slices"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
)

// A clause is a limit as compiled: which requests, for how much, and its parts.
type clause struct {
	limit         *Limit
	match, except []*Pattern
	costs         []Cost
	// parts are the limit itself and the one by the wider IPv6 prefix.
	parts []part
}

// A part of a clause is one limit by one kind of client.
type part struct {
	limit *Limit
	who   who
	own   numbers // whose client has neither plan nor override
	plans map[string]*numbers
	open  bool  // its kind of client may be told of it
	main  *part // of the part by the wider IPv6 prefix: the limit itself
	// plain is the one leaf that tells clients apart where that is all there is to
	// tell (see asking.plain); else −1.
	plain int
	// block keeps who was denied denied, fresh bounds the keys that nobody proved;
	// nil where the limit does neither.
	block, fresh *comporta.Rule
}

// applies says whether the request is one of the clause's.
func (c *clause) applies(r *identity.Request, p path) bool {
	return (len(c.match) == 0 || c.matched(r, p) != nil) && first(c.except, r, p) == nil
}

// matched is the pattern that matches the request: the first.
func (c *clause) matched(r *identity.Request, p path) *Pattern { return first(c.match, r, p) }

func first(patterns []*Pattern, r *identity.Request, p path) *Pattern {
	for _, pattern := range patterns {
		if pattern.matchRest(r.Method, r.Host) && p.matches(pattern) {
			return pattern
		}
	}
	return nil
}

// cost is the largest of those that match, 1 where none does.
func (c *clause) cost(r *identity.Request, p path) int64 {
	units, any := int64(0), false
	for i := range c.costs {
		cost := &c.costs[i]
		if cost.Match == nil || cost.Match.matchRest(r.Method, r.Host) && p.matches(cost.Match) {
			units, any = max(units, cost.Units), true
		}
	}
	if !any {
		return 1
	}
	return units
}

// narrow says whether it looks at the path.
func (c *clause) narrow() bool {
	narrow := (*Pattern).narrow
	return slices.ContainsFunc(c.match, narrow) || slices.ContainsFunc(c.except, narrow) ||
		slices.ContainsFunc(c.costs, func(cost Cost) bool { return cost.Match != nil && cost.Match.narrow() })
}
