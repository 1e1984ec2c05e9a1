package telemetry

import (
	"fmt"
	"hash/maphash"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/comporta/comporta/policy"
)

// neverAfter is the number of verdicts after which a limit that has not applied
// to any of them is warned of.
const neverAfter = 10_000

// limit counts the decisions of one limit.
type limit struct {
	name                    string
	allowed, denied, shadow prometheus.Counter
	applied                 atomic.Bool
	watchKeys               bool // whether one key with most of the traffic is news
	keys                    sketch
}

func (t *Telemetry) addLimits(e *policy.Engine) {
	decisions := t.counters("comporta_decisions_total",
		"Decisions of each limit; a shadow_denied one refused nothing.", "limit", "decision")
	add := func(name string) *limit {
		return &limit{
			name:    name,
			allowed: decisions.WithLabelValues(name, "allowed"),
			denied:  decisions.WithLabelValues(name, "denied"),
			shadow:  decisions.WithLabelValues(name, "shadow_denied"),
		}
	}
	for _, l := range e.Limits() {
		counted := add(l.Name)
		// What the engine put beside the policy's limits may well stay idle.
		written := slices.Contains(e.Policy().Limits, l)
		counted.watchKeys = written && l.Per.String() != "everyone"
		counted.applied.Store(!written)
		t.limits[l] = counted
	}
}

// Observe counts a verdict and the decisions in it.
func (t *Telemetry) Observe(v *policy.Verdict) {
	if v.Failed != nil {
		t.fallen[v.Fallen].Inc()
	}
	for i := range v.Applied {
		a := &v.Applied[i]
		l := t.limits[a.Limit]
		switch {
		case v.Failed != nil && a.Fallen != policy.Local: // nobody decided
		case a.Decision.Allowed:
			l.allowed.Inc()
		case !a.Denies():
			l.shadow.Inc()
		default:
			l.denied.Inc()
		}
		if !l.applied.Load() {
			l.applied.Store(true)
		}
		if l.watchKeys && l.keys.add(maphash.String(t.seed, a.Identity)) {
			t.Warn(OneKey, l.name, fmt.Sprintf("one key had more than half of %d requests in a row: "+
				"if clients come through a proxy or a balancer, name it as trusted", sketchRound))
		}
	}
	if t.seen.Add(1) == neverAfter {
		t.warnOfIdleLimits()
	}
}

// fallenName is the label of a way that verdicts fall; Default is that of those
// whose clients had left before the store could answer.
func fallenName(way policy.OnError) string {
	if way == policy.Default {
		return failureNames[Left]
	}
	return way.String()
}

// warnOfIdleLimits tells of the limits that no verdict has held yet.
func (t *Telemetry) warnOfIdleLimits() {
	for _, l := range t.limits {
		if !l.applied.Load() {
			t.Warn(NeverApplied, l.name, fmt.Sprintf("the limit applied to none of the first %d requests: "+
				"look at its match, and at whether clients show the identity that it is per", neverAfter))
		}
	}
}
