package config

import (
	"fmt"
	"regexp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

var goodPlan = regexp.MustCompile(planPattern)

// plans reads the sets of numbers that clients have by what they pay or are. It
// comes after the limits.
func (r *reader) plans(n *node) {
	if n.kind != mapping {
		r.wrongKind(n, "plans", "a mapping of names to numbers, as {free: {requests: 60/min}}")
		return
	}
	plans := map[string]policy.Plan{}
	for _, e := range r.once(n) {
		name := e.key.text
		if !goodPlan.MatchString(name) {
			r.fault(e.key, fmt.Sprintf("%q is no name for a plan", name), "write up to 64 small letters, digits, _ and -")
			continue
		}
		before := len(r.problems)
		plans[name] = r.numbersOf(e.value, "plan "+name)
		if len(r.problems) == before && len(plans[name]) == 0 {
			r.warn(e.key, "W-PLAN-UNUSED", fmt.Sprintf("plan %q has no numbers: who has it is held as if it had none", name), "name a limit, or leave the plan out")
		}
	}
	r.config.Policy.Plans = plans
	r.warnPlans(n)
}

// numbersOf reads numbers by the names of limits: those of a plan or an override.
func (r *reader) numbersOf(n *node, whose string) map[string]comporta.Limit {
	if n.kind != mapping {
		r.wrongKind(n, whose, "a mapping of limits to numbers, as {requests: 60/min burst 20}")
		return nil
	}
	out := map[string]comporta.Limit{}
	for _, e := range r.once(n) {
		d := r.limitNamed(e.key, whose)
		if d == nil {
			continue
		}
		if said, ok := r.ownNumbers(e.value, d, whose); ok {
			out[d.limit.Name] = said
		}
	}
	return out
}

// limitNamed is the limit that a key names; nil, with a problem, where there is none.
func (r *reader) limitNamed(key *node, whose string) *detail {
	var known []string
	for i := range r.details {
		if d := &r.details[i]; d.limit.Name == key.text && d.limit.Name != "" {
			return d
		}
		known = append(known, r.details[i].limit.Name)
	}
	hint := "name a limit of this file"
	if near := nearest(key.text, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	r.fault(key, fmt.Sprintf("%s: there is no limit %q", whose, key.text), hint)
	return nil
}

// ownNumbers reads a client's own numbers for a limit: of its kind, and such that
// they make a rule with how the limit decides.
func (r *reader) ownNumbers(n *node, d *detail, whose string) (said comporta.Limit, ok bool) {
	before := len(r.problems)
	if d.quota {
		said = r.parsed(n, "quota", "1000/month", comporta.ParseQuota)
	} else {
		said = r.parsed(n, "limit", "100/min", comporta.ParseLimit)
	}
	if len(r.problems) == before && d.rule != nil {
		if said.Calendar != nil && d.limit.Limit.Unlimited {
			r.fault(n, "quota: the limit itself is unlimited, and so has no periods that one could count in", "give the limit a quota that nobody reaches, as 1_000_000_000/month")
		} else if _, err := d.limit.With(said).Compile(); err != nil {
			r.limitError(err, nil, n, "limit")
		}
	}
	for i := range r.problems[before:] {
		p := &r.problems[before+i]
		p.Text = fmt.Sprintf("%s: %s: %s", whose, d.limit.Name, p.Text)
	}
	return said, len(r.problems) == before
}

// warnPlans warns of numbers that no client can have: their limits count by
// nothing that comes with a plan.
func (r *reader) warnPlans(n *node) {
	for _, d := range r.details {
		if d.limit.Per == nil || identity.Has(d.limit.Per, tellsPlans) {
			continue
		}
		for _, e := range n.entries {
			if _, ok := r.config.Policy.Plans[e.key.text][d.limit.Name]; !ok {
				continue
			}
			r.warn(e.key, "W-PLAN-UNUSED", fmt.Sprintf("nobody under limit %q has a plan: none comes with what it counts by, %s", d.limit.Name, d.limit.Per),
				"count per api_key or user too, or leave the limit out of plans")
			break
		}
	}
}

// tellsPlans says whether clients by a source may have a plan.
func tellsPlans(s identity.Source) bool {
	if _, is := s.(*identity.APIKey); is {
		return true
	}
	planner, is := s.(identity.Planner)
	return is && planner.TellsPlans()
}
