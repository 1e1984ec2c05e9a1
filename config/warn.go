package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// logEntry is the most bytes that the memory store takes for an entry of a
// sliding log, while its ring has room to grow; redisLogEntry is what Redis takes.
const (
	logEntry      = 12
	redisLogEntry = 16
)

// busyClients is for how many clients a warning works out the memory of sliding
// logs in Redis, and largeLogs from how much on it does.
const (
	busyClients = 10_000
	largeLogs   = 256 << 20
)

// warnings looks over a policy that is right for what is probably not meant.
// Only what can be proved from the file is said here; what traffic alone tells
// is the gateway's to say. (Trust and metrics were warned of where they were read.)
func (r *reader) warnings() {
	if len(r.config.Policy.Limits) == 0 {
		r.warn(r.limitsAt, "W-NO-LIMITS", "the policy has no limits: every request goes on", "write limits: and at least one")
	}
	if r.config.Store.Redis != nil && r.saveAt != nil {
		r.warn(r.saveAt, "W-SAVE-UNUSED", "with redis nothing is saved: the counts are there, and in memory only while it fails", "leave save out")
	}
	if p := r.config.Policy.Preflight; p.Mode != policy.Off && p.Limit.Limit == 0 && !p.Limit.Unlimited {
		r.warn(r.preflightAt, "W-ZERO", "every CORS preflight is refused", "browsers of other origins can then send simple requests only; for no limit write preflight: off")
	}
	for _, d := range r.details {
		if d.limit.Mode == policy.Off {
			r.warn(d.at.mode, "W-OFF", fmt.Sprintf("limit %q is off: it neither counts nor refuses", d.limit.Name), "mode: shadow counts and refuses nothing")
			continue
		}
		r.warnMatch(d)
		r.warnNumbers(d)
		r.warnLog(d)
		r.warnForgeable(d)
		r.warnCost(d)
		r.warnWords(d)
		r.warnLockout(d)
		r.warnShared(d)
	}
}

// warnMatch warns of a limit whose exceptions cover all that it matches.
func (r *reader) warnMatch(d detail) {
	covered := func(p *policy.Pattern) bool {
		for _, e := range d.limit.Except {
			if covers(e.String(), p.String()) {
				return true
			}
		}
		return false
	}
	all := d.limit.Match
	if len(all) == 0 {
		everything, err := policy.ParsePattern("/")
		if err != nil {
			return
		}
		all = []*policy.Pattern{everything}
	}
	for _, p := range all {
		if !covered(p) {
			return
		}
	}
	r.warn(d.at.limit, "W-NEVER-MATCHES", fmt.Sprintf("limit %q matches nothing: its exceptions cover all that it matches", d.limit.Name), "narrow except, or remove the limit")
}

// covers says whether pattern a provably matches all that b does: any method or
// the same, any host or the same, and the same path or a plain folder above it.
func covers(a, b string) bool {
	aMethod, aHost, aPath := parts(a)
	bMethod, bHost, bPath := parts(b)
	method := aMethod == "" || aMethod == bMethod || aMethod == "GET" && bMethod == "HEAD"
	host := aHost == "" || aHost == bHost
	folder := strings.HasSuffix(aPath, "/") && !strings.ContainsAny(aPath, "{%") && strings.HasPrefix(bPath, aPath)
	return method && host && (aPath == bPath || folder)
}

// parts of a pattern that parsed.
func parts(pattern string) (method, host, path string) {
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		method, pattern = pattern[:i], strings.TrimLeft(pattern[i:], " \t")
	}
	slash := strings.IndexByte(pattern, '/')
	return method, strings.ToLower(strings.TrimSuffix(pattern[:slash], ".")), pattern[slash:]
}

func (r *reader) warnNumbers(d detail) {
	l := d.limit.Limit
	if !l.Unlimited && l.Limit == 0 {
		what := "every request that it applies to"
		if d.limit.Mode == policy.Shadow {
			what = "nothing, being in shadow, and would refuse every request that it applies to"
		}
		r.warn(d.at.numbers, "W-ZERO", fmt.Sprintf("limit %q refuses %s", d.limit.Name, what), "a limit of 0 lets nobody through; for no limit write unlimited")
	}
	if l.Calendar != nil && l.Limit > 0 && r.config.Store.Save == "" && r.config.Store.Redis == nil {
		r.warn(d.at.numbers, "W-QUOTA-UNSAVED", fmt.Sprintf("quota %q is forgotten when the gateway stops: after each restart every client has %v anew", d.limit.Name, l),
			"write store: {memory: {save: comporta.state}}")
	}
}

// warnShared warns of words about a shared store that do nothing.
func (r *reader) warnShared(d detail) {
	if r.config.Store.Redis != nil {
		if l := d.limit.Limit.Lease; l != nil && l.Most(d.rule.Full()) == 0 {
			r.warn(d.at.lease, "W-LEASE-UNUSED", fmt.Sprintf("lease of limit %q does nothing: its share of a full budget of %d is less than one unit", d.limit.Name, d.rule.Full()), "raise the share or the limit, or leave lease out")
		}
		return
	}
	if d.at.onError != nil {
		r.warn(d.at.onError, "W-ON-ERROR-UNUSED", fmt.Sprintf("on_error of limit %q does nothing: the counts are in this process and do not fail", d.limit.Name), "leave it out, or write store: {redis: …}")
	}
	if d.at.lease != nil {
		r.warn(d.at.lease, "W-LEASE-UNUSED", fmt.Sprintf("lease of limit %q does nothing: the counts are in this process already", d.limit.Name), "leave it out, or write store: {redis: …}")
	}
}

// warnLog warns of a sliding log that, with as many clients as the store keeps
// keys, needs more memory than it is given, or, in Redis, much of it with a
// number of clients that is not unheard of.
func (r *reader) warnLog(d detail) {
	l := d.limit.Limit
	if l.Unlimited || l.Algorithm != comporta.SlidingLog || l.Limit == 0 {
		return
	}
	store := r.config.Store
	keys := int64(store.MaxKeys)
	_, one := d.limit.Per.(identity.Everyone)
	if store.Redis != nil {
		if each := l.Limit * redisLogEntry; !one && each > largeLogs/busyClients {
			r.warn(d.at.numbers, "W-LOG-LARGE", fmt.Sprintf("limit %q keeps a log of up to %s per client in Redis: with %d busy clients, %s",
				d.limit.Name, roughSize(each), busyClients, roughSize(each*busyClients)),
				"use algorithm: sliding_counter, whose memory does not grow with the limit, or give Redis that much")
		}
		return
	}
	if one {
		keys = 1
	}
	each := l.Limit * logEntry
	fit := store.MaxLogBytes / each
	if fit >= keys {
		return
	}
	r.warn(d.at.numbers, "W-LOG-LARGE", fmt.Sprintf("limit %q keeps a log of up to %s per client, and max_log_bytes is %s: room for %s; past that, logs get coarser, and refuse longer than they need",
		d.limit.Name, roughSize(each), roughSize(store.MaxLogBytes), count(fit, "busy client")),
		"use algorithm: sliding_counter, whose memory does not grow with the limit; or raise store.memory.max_log_bytes")
}

func (r *reader) warnForgeable(d detail) {
	var h identity.Header
	if !identity.Has(d.limit.Per, func(s identity.Source) (is bool) {
		if found, header := s.(identity.Header); header {
			h, is = found, true
		}
		return is
	}) {
		return
	}
	r.warn(d.at.per, "W-FORGEABLE", fmt.Sprintf("limit %q counts per %s, which nobody proves: a client that sends another value each time is never limited by it, and one that sends somebody else's uses up their budget", d.limit.Name, h.Name()),
		"let something before the gateway check or set the header, and put a limit per address beside it")
}

// warnCost warns of a cost that a full budget cannot pay, the limit's own or a plan's.
func (r *reader) warnCost(d detail) {
	costs := slices.Clone(d.limit.Cost)
	if h := d.limit.CostHeader; h != nil {
		costs = []policy.Cost{{Units: h.Default}}
	} else if e := d.limit.Estimate; e != nil {
		costs = []policy.Cost{{Units: e.Default}}
	}
	for _, c := range costs {
		which := "every request"
		switch {
		case c.Match != nil:
			which = fmt.Sprintf("a request for %q", c.Match)
		case len(d.limit.Cost) == 0:
			which = "a request that does not say its cost"
		}
		r.warnDear(d, which, c.Units, d.rule, fmt.Sprintf("limit %q", d.limit.Name))
		for _, plan := range slices.Sorted(maps.Keys(r.config.Policy.Plans)) {
			if said, ok := r.config.Policy.Plans[plan][d.limit.Name]; ok {
				_, rule := own(d.limit, said)
				r.warnDear(d, which, c.Units, rule, fmt.Sprintf("limit %q with plan %q", d.limit.Name, plan))
			}
		}
	}
}

func (r *reader) warnDear(d detail, which string, cost int64, rule *comporta.Rule, whose string) {
	full := rule.Full()
	if full == 0 || cost <= full || rule.Limit().Unlimited {
		return
	}
	r.warn(d.at.cost, "W-COST-OVER", fmt.Sprintf("%s costs %d, and a full budget of %s holds %d: it is always refused", which, cost, whose, full),
		"raise the limit or its burst, or lower the cost")
}

// roughSize prints bytes for people, rounded up to a whole unit.
func roughSize(bytes int64) string {
	units := [...]string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; bytes >= 10<<10 && i < len(units)-1; i++ {
		bytes = (bytes + 1023) >> 10
	}
	return fmt.Sprintf("%d %s", bytes, units[i])
}

// count is a number with its thing: 1 client, 2 clients.
func count(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
