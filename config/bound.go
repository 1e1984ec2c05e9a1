package config

import (
	"fmt"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// boundWords says what a limit promises: the most that one client gets through
// in any stretch of time as long as its window.
func boundWords(l *policy.Limit, rule *comporta.Rule) string {
	said := promise(l, rule)
	switch l.OnLimit {
	case policy.Mark:
		said = "refuses nothing, marks what is over: " + said
	case policy.Demote:
		said = "refuses nothing, puts after others what is over: " + said
	}
	switch {
	case l.Mode == policy.Shadow:
		return "in shadow, refuses nothing; if enforced: " + said
	case l.Mode == policy.Off:
		return "off, neither counts nor refuses; if enforced: " + said
	case l.Share > 0:
		return fmt.Sprintf("enforced for %d%% of the clients, in shadow for the others: %s", l.Share, said)
	}
	return said
}

// promise is what a limit promises where it is enforced.
func promise(l *policy.Limit, rule *comporta.Rule) string {
	said := most(l, rule)
	if l.Limit.Unlimited || l.Limit.Limit == 0 {
		return said
	}
	switch {
	case l.Limit.Charge == comporta.Failures:
		said += "; an answer that is no failure gives its units back"
	case l.Estimate != nil:
		said += "; what answers cost over their estimates comes on top"
	}
	if l.Limit.Charge == comporta.Attempts {
		said += "; refused attempts count too"
	}
	// A fixed window's bound holds the windows on either side in full: a lease, which
	// ends with its window, adds nothing to that.
	if lease := l.Limit.Lease; lease != nil && lease.Most(rule.Full()) > 0 && l.Limit.Algorithm != comporta.FixedWindow {
		said += "; leases may add up to " + units(l, lease.Most(rule.Full()))
	}
	return said
}

func most(l *policy.Limit, rule *comporta.Rule) string {
	n := l.Limit
	switch {
	case n.Unlimited:
		return "no bound"
	case n.Limit == 0:
		return "refuses every request"
	case n.Calendar != nil:
		return fmt.Sprintf("at most %s in each %v from %s %s; up to twice that around its start",
			units(l, n.Limit), n.Calendar.Period, formatStart(n.Calendar), zoneName(n.Calendar.Zone))
	}
	most := fmt.Sprintf("at most %s in any %s", units(l, rule.Bound(n.Window)), span(n.Window))
	switch n.Algorithm {
	case comporta.FixedWindow:
		return fmt.Sprintf("%s (%d in each window, twice that around a boundary)", most, n.Limit)
	case comporta.SlidingCounter:
		return fmt.Sprintf("%s (near %d when traffic is even)", most, n.Limit)
	case comporta.SlidingLog:
		return most + ", exactly"
	case comporta.LeakyBucket:
		return fmt.Sprintf("%s are let in, and go on evenly, %d per %s, each after a wait under %s", most, n.Limit, span(n.Window), span(rule.FillTime()))
	}
	most = fmt.Sprintf("%s (%d at once, then %d per %s)", most, rule.Full(), n.Limit, span(n.Window))
	if n.MaxWait > 0 {
		most += "; what is over it waits up to " + span(n.MaxWait)
	}
	return most
}

// units is a number of units; they have a name only where requests cost not one each.
func units(l *policy.Limit, n int64) string {
	if len(l.Cost) == 0 && l.CostHeader == nil && l.Estimate == nil {
		return fmt.Sprint(n)
	}
	return count(n, "unit")
}

// span is a duration as people say it, in one unit where one will do: 60 s, 10 min, 24 h.
func span(d time.Duration) string {
	for _, u := range [...]struct {
		name  string
		one   time.Duration
		least time.Duration
	}{{"days", 24 * time.Hour, 48 * time.Hour}, {"h", time.Hour, time.Hour}, {"min", time.Minute, 2 * time.Minute}, {"s", time.Second, time.Second}, {"ms", time.Millisecond, 0}} {
		if d >= u.least && d%u.one == 0 && (u.one > time.Millisecond || d < time.Second) {
			return fmt.Sprintf("%d %s", d/u.one, u.name)
		}
	}
	return comporta.FormatDuration(d)
}

func zoneName(zone *time.Location) string {
	if zone == nil {
		return "UTC"
	}
	return zone.String()
}
