package telemetry

import (
	"cmp"
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
	marked, demoted, warned prometheus.Counter
	applied                 atomic.Bool
	watchKeys               bool // whether one key with most of the traffic is news
	keys                    sketch
	clients                 *ranking // nil where there is but one
}

// book has the limits of one engine. Verdicts of the one before, which are still
// under way when it is opened, are counted in it too.
type book struct {
	limits map[*policy.Limit]*limit
	byName map[string]*limit
	seen   atomic.Int64 // verdicts
}

// find is a limit's counts; nil where the policy has none of that name any more.
func (b *book) find(l *policy.Limit) *limit {
	if counted := b.limits[l]; counted != nil {
		return counted
	}
	return b.byName[l.Name]
}

// perLimit are the counters with a series for each limit.
type perLimit struct{ decisions, marked, demoted, warned *prometheus.CounterVec }

func (t *Telemetry) newPerLimit() perLimit {
	return perLimit{
		decisions: t.counters("comporta_decisions_total", "Decisions of each limit; a shadow_denied one refused nothing.", "limit", "decision"),
		marked:    t.counters("comporta_marked_total", "Requests over the limit that went on with a mark.", "limit"),
		demoted:   t.counters("comporta_demoted_total", "Requests over the limit that went on behind others.", "limit"),
		warned:    t.counters("comporta_quota_warnings_total", "Clients whose use came to where the limit warns.", "limit"),
	}
}

// Follow counts the limits of engines, of which the first is the policy's, in the
// place of those that were counted before. What was counted of a limit goes on
// under its name, and the series of one that is gone end: how many there are hangs
// on the policy alone. It is safe for concurrent use with all but itself.
func (t *Telemetry) Follow(engines ...*policy.Engine) {
	before := t.book.Load()
	b := &book{limits: make(map[*policy.Limit]*limit), byName: make(map[string]*limit)}
	for _, e := range slices.Backward(engines) {
		t.open(b, before, e, e == engines[0])
	}
	t.book.Store(b)
	if before == nil {
		return
	}
	for name, was := range before.byName {
		is := b.byName[name]
		if is == nil {
			is = new(limit)
			t.warnings.forget(name)
		}
		t.perLimit.end(was, is)
	}
}

// open puts an engine's limits into the book.
func (t *Telemetry) open(b, before *book, e *policy.Engine, policys bool) {
	for _, l := range e.Limits() {
		name := l.Name
		counted := &limit{
			name:    name,
			allowed: t.perLimit.decisions.WithLabelValues(name, "allowed"),
			denied:  t.perLimit.decisions.WithLabelValues(name, "denied"),
			shadow:  t.perLimit.decisions.WithLabelValues(name, "shadow_denied"),
		}
		if l.OnLimit == policy.Mark {
			counted.marked = t.perLimit.marked.WithLabelValues(name)
		}
		if l.OnLimit == policy.Demote {
			counted.demoted = t.perLimit.demoted.WithLabelValues(name)
		}
		if l.WarnAt > 0 {
			counted.warned = t.perLimit.warned.WithLabelValues(name)
		}
		// What the engine put beside the policy's limits may well stay idle.
		written := policys && slices.Contains(e.Policy().Limits, l)
		counted.watchKeys = written && l.Per.String() != "everyone"
		if policys && t.places > 0 && l.Per.String() != "everyone" {
			counted.clients = before.clients(name)
			if counted.clients == nil {
				counted.clients = new(ranking)
				counted.clients.make(t.places)
			}
		}
		counted.applied.Store(!written || before != nil && before.applied(name))
		b.limits[l], b.byName[name] = counted, counted
	}
}

// end ends the series of a limit that its successor has no more.
func (p *perLimit) end(was, is *limit) {
	series := prometheus.Labels{"limit": was.name}
	for _, c := range []struct {
		of      *prometheus.CounterVec
		was, is prometheus.Counter
	}{
		{p.decisions, was.allowed, is.allowed},
		{p.marked, was.marked, is.marked}, {p.demoted, was.demoted, is.demoted}, {p.warned, was.warned, is.warned},
	} {
		if c.was != nil && c.is == nil {
			c.of.DeletePartialMatch(series)
		}
	}
}

// applied says whether a limit of that name has applied to a request.
func (b *book) applied(name string) bool {
	counted := b.byName[name]
	return counted != nil && counted.applied.Load()
}

// clients is the ranking of a limit of that name; nil where there is none.
func (b *book) clients(name string) *ranking {
	if b == nil || b.byName[name] == nil {
		return nil
	}
	return b.byName[name].clients
}

// Observe counts a verdict and the decisions in it.
func (t *Telemetry) Observe(v *policy.Verdict) {
	if v.Failed != nil {
		t.fallen[v.Fallen].Inc()
	}
	for _, s := range v.Unproved {
		t.unproved[credentialOf(s)].Inc()
	}
	b := t.book.Load()
	if t.began.Load() == 0 {
		t.began.CompareAndSwap(0, int64(v.Now))
	}
	for i := range v.Applied {
		a := &v.Applied[i]
		l := b.find(a.Limit)
		if l == nil {
			continue
		}
		t.observe(l, v, a)
		if l.watchKeys || l.clients != nil {
			hash := maphash.String(t.seed, a.Identity)
			t.watch(l, hash)
			t.rank(l, v, i, hash)
		}
	}
	if b.seen.Add(1) == neverAfter {
		t.warnOfIdleLimits(b)
	}
}

// observe counts one limit's part in a verdict.
func (t *Telemetry) observe(l *limit, v *policy.Verdict, a *policy.Applied) {
	switch {
	case v.Failed != nil && a.Fallen != policy.Local: // nobody decided
	case a.Decision.Allowed:
		l.allowed.Inc()
	case a.Marks():
		l.denied.Inc()
		inc(l.marked)
	case a.Demotes():
		l.denied.Inc()
		inc(l.demoted)
	case !a.Denies():
		l.shadow.Inc()
	default:
		l.denied.Inc()
	}
	if !l.applied.Load() {
		l.applied.Store(true)
	}
	t.warned(l, a)
}

// Warned counts and logs the limits of a verdict that warn, where that was known only
// after it was observed.
func (t *Telemetry) Warned(v *policy.Verdict) {
	b := t.book.Load()
	for i := range v.Applied {
		if l := b.find(v.Applied[i].Limit); l != nil {
			t.warned(l, &v.Applied[i])
		}
	}
}

// warned tells of a client whose use has come to where its limit tells of it.
func (t *Telemetry) warned(l *limit, a *policy.Applied) {
	if a.Warned {
		inc(l.warned)
		t.log.Warn("a client has used so much of its limit as is warned of", "limit", l.name, "who", cmp.Or(a.Name, a.Identity),
			"used", a.Decision.Limit-a.Decision.Remaining, "of", a.Decision.Limit)
	}
}

// watch warns of a key, by its hash, that has most of a limit's traffic.
func (t *Telemetry) watch(l *limit, hash uint64) {
	if l.watchKeys && l.keys.add(hash) {
		t.Warn(OneKey, l.name, fmt.Sprintf("one key had more than half of %d requests in a row: "+
			"if clients come through a proxy or a balancer, name it as trusted", sketchRound))
	}
}

// inc counts where there is a counter. There is none for a verdict of an engine
// whose limit did what the present one of that name does not.
func inc(c prometheus.Counter) {
	if c != nil {
		c.Inc()
	}
}

// SettleFailed counts a request whose answer could not be charged for.
func (t *Telemetry) SettleFailed() { t.unsettled.Inc() }

// fallenName is the label of a way that verdicts fall; Default is that of those
// whose clients had left before the store could answer.
func fallenName(way policy.OnError) string {
	if way == policy.Default {
		return failureNames[Left]
	}
	return way.String()
}

// warnOfIdleLimits tells of the limits that no verdict has held yet.
func (t *Telemetry) warnOfIdleLimits(b *book) {
	for _, l := range b.limits {
		if !l.applied.Load() {
			t.Warn(NeverApplied, l.name, fmt.Sprintf("the limit applied to none of the first %d requests: "+
				"look at its match, and at whether clients show the identity that it is per", neverAfter))
		}
	}
}
