package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// soon is how long before its end an override is warned of.
const soon = 7 * 24 * time.Hour

// longestReason bounds the text of a reason, in bytes.
const longestReason = 500

// An override is one of the file's, with what is told of it.
type override struct {
	*policy.Override
	who   []entry // as the file says it
	day   string  // the last one on which it holds; "" for ever
	ended bool
}

// overrides reads single clients' own numbers. It comes after the limits. Those
// that have ended are told of, and are no part of the policy.
func (r *reader) overrides(n *node) {
	if n.kind != list {
		r.wrongKind(n, "overrides", "a list: each override begins with \"- who:\"")
		return
	}
	type own struct{ client, limit string }
	lines := map[own]int{}
	for _, item := range n.items {
		o, sound := r.override(item)
		if !sound {
			continue
		}
		r.config.overrides = append(r.config.overrides, o)
		if o.ended {
			continue
		}
		for name := range o.Limits {
			key := own{o.Who.Who.ID + "\x00" + o.Who.Network.String(), name}
			if line, double := lines[key]; double {
				r.fault(item, fmt.Sprintf("two overrides of %s for limit %q", whoText(o.who), name), fmt.Sprintf("the other is in line %d: remove one", line))
			}
			lines[key] = item.line
		}
		r.config.Policy.Overrides = append(r.config.Policy.Overrides, o.Override)
	}
}

// override reads one; it is not sound where a problem was found.
func (r *reader) override(n *node) (o override, sound bool) {
	before := len(r.problems)
	words := r.mapping(n, "an override", overrideWords)
	if words == nil {
		return o, false
	}
	o.Override = &policy.Override{Line: n.line}
	if e, ok := words["who"]; !ok {
		r.fault(n, "an override does not say whose it is", "write who: {api_key: acme}")
	} else if r.who(e.value, &o.Who) {
		o.who = e.value.entries
	}
	limits, ok := words["limits"]
	if !ok {
		r.fault(n, "an override has no limits", "write limits: {requests: 100/min}")
	} else if o.Limits = r.numbersOf(limits.value, "override"); len(r.problems) == before {
		if len(o.Limits) == 0 {
			r.fault(limits.value, "an override has no limits", "write limits: {requests: 100/min}")
		}
		r.counted(limits.value, &o)
	}
	if e, ok := words["reason"]; ok {
		if o.Reason, ok = r.text(e.value, "reason", "launch week"); ok && len(o.Reason) > longestReason {
			r.fault(e.value, fmt.Sprintf("reason is longer than %d bytes", longestReason), "write a line, and where the rest is to be read")
		}
	}
	if e, ok := words["through"]; ok {
		o.day, o.Until = r.lastDay(e.value)
	}
	if sound = len(r.problems) == before; sound {
		r.warnOverride(n, words, &o)
	}
	return o, sound
}

// lastDay reads a day in the file's zone, and is the instant at which it is over.
func (r *reader) lastDay(n *node) (string, time.Time) {
	said, ok := r.text(n, "through", "2027-01-31")
	if !ok {
		return "", time.Time{}
	}
	day, err := time.Parse(time.DateOnly, said)
	if err != nil {
		r.fault(n, fmt.Sprintf("through: %q is no day", said), "write year, month and day, as 2027-01-31")
		return "", time.Time{}
	}
	return said, r.config.endOf(day)
}

// endOf is the instant at which a day is over in the file's zone: that at which a
// quota's day is.
func (c *Config) endOf(day time.Time) time.Time {
	zone := cmp.Or(c.Policy.Zone, time.UTC)
	days, err := comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 1, Calendar: &comporta.Calendar{Period: comporta.Day, Zone: zone}}.Compile()
	if err != nil {
		panic(err) // it is our own
	}
	noon := time.Date(day.Year(), day.Month(), day.Day(), 12, 0, 0, 0, zone)
	_, end := days.WindowOf(comporta.InstantOf(noon), 0)
	return end.Time().In(zone)
}

// counted wants each limit of an override to count that client by itself.
func (r *reader) counted(n *node, o *override) {
	for _, e := range r.once(n) {
		if l := r.limitNamed(e.key, "override").limit; l.Per != nil && !counts(l, &o.Who) {
			r.fault(e.key, fmt.Sprintf("override: limit %q never counts %s by itself: it counts per %s", l.Name, whoText(o.who), l.Per), "name a limit that does")
		}
	}
}

// counts says whether a limit can count a client by itself, and not only with others
// or as somebody else.
func counts(l *policy.Limit, who *policy.Listed) bool {
	options, ok := l.Per.(identity.First)
	if !ok {
		options = identity.First{l.Per}
	}
	isAddress := func(s identity.Source) bool { _, is := s.(*identity.Address); return is }
	byAddress := slices.ContainsFunc(options, isAddress) || l.OnMissing == policy.ByAddress || l.OnMissing == policy.Skip && identity.Has(l.Per, isClaimed)
	if who.Network.IsValid() || isAddress(who.Source) {
		return byAddress
	}
	return slices.ContainsFunc(options, func(s identity.Source) bool {
		_, all := s.(identity.All)
		return !all && s == who.Source
	})
}

func (r *reader) warnOverride(n *node, words map[string]entry, o *override) {
	whose := whoText(o.who)
	now := r.options.now()
	at := n
	if e, ok := words["through"]; ok {
		at = e.value
	}
	switch o.ended = o.Ended(now); {
	case o.ended:
		r.warn(at, "W-OVERRIDE-ENDED", fmt.Sprintf("the override of %s ended with %s and is ignored", whose, o.day), "remove it, or write another day")
		return
	case o.day == "":
		r.warn(at, "W-OVERRIDE-FOREVER", fmt.Sprintf("the override of %s has no end", whose), "write through: and the last day on which it holds; what is to stay belongs into a plan")
	case o.Until.Sub(now) <= soon:
		r.warn(at, "W-OVERRIDE-ENDS", fmt.Sprintf("the override of %s ends with %s", whose, o.day), "agree on what is to hold then")
	}
	if o.Reason == "" {
		r.warn(n, "W-OVERRIDE-REASON", fmt.Sprintf("the override of %s does not say why", whose), "write reason: for whoever reads this in a year")
	}
}

// whoText is a client as the file names it.
func whoText(who []entry) string {
	said := make([]string, len(who))
	for i, e := range who {
		said[i] = e.key.text + ": " + scalars(e.value)
	}
	return "{" + strings.Join(said, ", ") + "}"
}

// scalars are a value's texts.
func scalars(n *node) string {
	if n.kind != list {
		return n.text
	}
	said := make([]string, len(n.items))
	for i, item := range n.items {
		said[i] = item.text
	}
	return "[" + strings.Join(said, ", ") + "]"
}

// own is the limit as it is for a client with those numbers; nil where they make
// no rule.
func own(l *policy.Limit, said comporta.Limit) (*policy.Limit, *comporta.Rule) {
	mine := *l
	mine.Limit = l.With(said)
	rule, err := mine.Limit.Compile()
	if err != nil {
		return nil, nil
	}
	return &mine, rule
}
