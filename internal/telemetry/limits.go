package telemetry

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/comporta/comporta/policy"
)

// neverAfter is the number of verdicts after which a limit that has not applied
// to any of them is warned of.
const neverAfter = 10_000

// limit counts the decisions of one limit.
type limit struct {
	name                  string
	allowed, denied, shad prometheus.Counter
	matched               atomic.Bool
	watchKeys             bool // whether one key with most of the traffic is news
	keys                  sketch
}

func (t *Telemetry) addLimits(p *policy.Policy) {
	decisions := t.counters("comporta_decisions_total",
		"Decisions of each limit; a shadow_denied one refused nothing.", "limit", "decision")
	add := func(name string) *limit {
		return &limit{
			name:    name,
			allowed: decisions.WithLabelValues(name, "allowed"),
			denied:  decisions.WithLabelValues(name, "denied"),
			shad:    decisions.WithLabelValues(name, "shadow_denied"),
		}
	}
	for _, l := range p.Limits {
		counted := add(l.Name)
		counted.watchKeys = l.Per != nil && l.Per.String() != "everyone"
		counted.matched.Store(l.Mode == policy.Off)
		t.limits[l] = counted
	}
	if p.Preflight != nil {
		t.limits[p.Preflight] = add(p.Preflight.Name)
		t.limits[p.Preflight].matched.Store(true)
	}
	t.others = add("*other")
}

// Observe counts a verdict and the decisions in it.
func (t *Telemetry) Observe(v *policy.Verdict) {
	if v.Failed != nil {
		t.unsure.Inc()
	}
	for i := range v.Applied {
		a := &v.Applied[i]
		l, ok := t.limits[a.Limit]
		if !ok {
			l = t.others
		}
		switch {
		case a.Decision.Allowed:
			l.allowed.Inc()
		case a.Limit.Mode == policy.Shadow:
			l.shad.Inc()
		default:
			l.denied.Inc()
		}
		if !l.matched.Load() {
			l.matched.Store(true)
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

// warnOfIdleLimits tells of the limits that no verdict has held yet.
func (t *Telemetry) warnOfIdleLimits() {
	for _, l := range t.limits {
		if !l.matched.Load() {
			t.Warn(NeverApplied, l.name, fmt.Sprintf("the limit applied to none of the first %d requests: "+
				"look at its match, and at whether clients show the identity that it is per", neverAfter))
		}
	}
}
