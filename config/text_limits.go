package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (p *page) limit(l *limitView) {
	numbers := []string{l.Limit + l.Quota}
	if l.Quota == "" && l.Limit != "unlimited" {
		numbers = append(numbers, l.Algorithm)
	}
	numbers = append(numbers, "per "+strings.Trim(l.per, "{}"))
	name := l.Name
	if len(name) > margin-2 {
		fmt.Fprintf(p, "  %s\n", name)
		name = ""
	}
	p.line(name, strings.Join(numbers, ", "))
	p.more(l.Bound)
	for _, plan := range slices.Sorted(maps.Keys(l.Plans)) {
		p.more(fmt.Sprintf("plan %s: %s; %s", plan, l.Plans[plan].Numbers, l.Plans[plan].Bound))
	}
	if l.Name == preflightName {
		return // it has no patterns, costs and secrets
	}
	which := "all requests"
	if len(l.Match) > 0 {
		which = strings.Join(l.Match, ", ")
	}
	if len(l.Except) > 0 {
		which += " except " + strings.Join(l.Except, ", ")
	}
	p.more("for " + which)
	if l.OnMissing != "" {
		p.more(onMissingWords[l.OnMissing])
	}
	if said := costText(l.Cost); said != "" {
		p.more(said)
	}
	for _, said := range l.conduct() {
		p.more(said)
	}
	if l.Stagger {
		p.more("each client's windows start at an offset of its own")
	}
	if l.Lease != nil {
		p.more(fmt.Sprintf("leases: up to %s of a full budget is taken ahead, for %s each; size: %v", l.Lease.Share, l.Lease.TTL, l.Lease.Size))
	}
	if l.OnError != "" {
		p.more("while the store fails: " + onErrorText[l.OnError])
	}
	if !l.Show && l.Mode == "enforce" && l.Limit+l.Quota != "unlimited" {
		p.more("clients are not told of it")
	}
}

// onMissingWords is what becomes of requests that lack what a limit counts by, by
// the word for it.
var onMissingWords = map[string]string{
	"skip":    "who shows none of these is not under it",
	"address": "who shows none of these is counted by the address",
	"deny":    "who shows none of these is refused with 401",
}

// conduct says what becomes of what is over a limit, where it is not just refused.
func (l *limitView) conduct() (said []string) {
	if l.Failure != nil {
		said = append(said, "failures are answers with "+joinAny(l.Failure.Status))
	}
	if s, ok := l.OnLimit.(statusView); ok {
		said = append(said, fmt.Sprintf("what is over it is answered with %d", s.Status))
	}
	if l.Block != "" {
		said = append(said, "who was over it stays so for "+l.Block)
	}
	if l.Message != "" {
		said = append(said, "clients are told: "+l.Message)
	}
	if l.Help != "" {
		said = append(said, "and to read: "+l.Help)
	}
	if w := l.WarnAt; w != nil {
		where := "in the log"
		if w.Header != "" {
			where += " and in " + w.Header
		}
		said = append(said, fmt.Sprintf("who has used %s of it is told of %s", w.At, where))
	}
	return said
}

func joinAny(items []any) string {
	said := make([]string, len(items))
	for i, item := range items {
		said[i] = fmt.Sprint(item)
	}
	return strings.Join(said, ", ")
}

// costText says what requests cost where it is not one each.
func costText(cost any) string {
	switch c := cost.(type) {
	case costHeaderView:
		return fmt.Sprintf("costs what %s says where one of %s sets it, else %d", c.Header, strings.Join(c.From, ", "), c.Default)
	case estimateView:
		said := fmt.Sprintf("costs %d until the answer", c.Estimate.Default)
		if c.Estimate.RequestJSON != "" {
			said = fmt.Sprintf("costs what %s of the request says, else %d, until the answer", c.Estimate.RequestJSON, c.Estimate.Default)
		}
		said += ", then what " + otherwise(c.From.ResponseJSON, c.From.ResponseHeader) + " of it says"
		if c.Refund != "" {
			said += "; nothing where the upstream fails"
		}
		return said
	case []costView:
		return costsText(c)
	}
	return ""
}

func costsText(costs []costView) string {
	if len(costs) == 1 && costs[0].Units == 1 {
		return ""
	}
	var said []string
	for _, c := range costs {
		if c.Match == "" {
			said = append(said, fmt.Sprintf("%d each for all else", c.Units))
		} else {
			said = append(said, fmt.Sprintf("%d for %s", c.Units, c.Match))
		}
	}
	if len(costs) == 1 {
		return fmt.Sprintf("costs %d each", costs[0].Units)
	}
	return "costs " + strings.Join(said, ", ")
}

func (p *page) override(o *overrideView) {
	said := o.who
	switch {
	case o.Ended:
		said += ", ended with " + o.Through + " and ignored"
	case o.Through == "":
		said += ", for ever"
	default:
		said += ", through " + o.Through
	}
	p.line(fmt.Sprintf("line %d", o.Line), said)
	if o.Reason != "" {
		p.more("reason: " + o.Reason)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Limits)) {
		mine := o.Limits[name]
		p.more(fmt.Sprintf("%s: %s; %s", name, mine.Numbers, mine.Bound))
		for _, c := range mine.Changes {
			p.more("  " + c.Text)
		}
	}
}
