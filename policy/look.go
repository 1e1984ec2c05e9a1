package policy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
)

// Look is [Engine.Check] that spends nothing: the verdict says what the request
// would be answered. Decisions are those of peeks, so that what remains is before
// the request. Where a request for several units would be denied by a sliding log
// or counter, its retry is when the budget is full: it may come sooner; other times
// may be a microsecond longer than they then are. A request that Check refuses
// before all its clients are known is refused here by those same limits, but the
// verdict then tells of the others, too.
func (e *Engine) Look(ctx context.Context, r *identity.Request, v *Verdict) {
	v.begin(e.now(), r)
	a := e.ask(r)
	defer e.done(a)
	if e.lists.byNetwork(a, v) {
		return
	}
	if !a.free {
		a.gather(v.Preflight)
	}
	var early *comporta.Outcome // of a request that is refused before all is known
	for stage := identity.Look; ; {
		next, wait := a.learn(ctx, stage, v)
		if early == nil && e.lists.byClient(a, v) {
			return
		}
		if !wait || early == nil && v.Refused != nil {
			break
		}
		if early == nil && !a.free && a.lookAhead(ctx, v, true) {
			if e.peek(ctx, a, v); !v.Allowed && v.Failed == nil {
				early = new(v.Outcome)
			}
			v.forget()
		}
		stage = next
	}
	if early != nil {
		v.Refused = nil
	}
	a.lookAhead(ctx, v, false)
	e.peek(ctx, a, v)
	if early != nil && v.Failed == nil {
		v.Outcome = *early
	}
	v.refused()
}

// LookAtCaller looks at every limit, whatever its patterns, whose client the
// request shows without its body, for one unit each and spending nothing. Limits
// per a part of the path are left out: which one the caller means nobody knows.
// No list has a say, and the request is never refused.
func (e *Engine) LookAtCaller(ctx context.Context, r *identity.Request, v *Verdict) {
	v.begin(e.now(), r)
	body := r.Body
	r.Body = nil
	defer func() { r.Body = body }()
	a := e.ask(r)
	defer e.done(a)
	for _, c := range e.clauses {
		if !identity.Has(c.limit.Per, isPath) {
			for i := range c.parts {
				a.put(c, &c.parts[i])
			}
		}
	}
	a.learn(ctx, identity.Credential, v)
	v.Refused = nil
	for i := range a.under {
		a.under[i].cost = 1
	}
	a.lookAhead(ctx, v, false)
	e.peek(ctx, a, v)
}

func isPath(s identity.Source) bool {
	_, is := s.(identity.Path)
	return is
}

// ErrPlan is the error of looking at a client whose plan only its credential
// tells and was not told lately: to count it by other numbers than its own would
// change what is counted. Give Who.Plan.
var ErrPlan = errors.New("policy: the client's plan is not known here: it comes with its credential; say which one it is")

// LookAt looks at one client under all limits that can count it by itself, for
// one unit each and spending nothing. Who.Plan says its plan where it is known.
func (e *Engine) LookAt(ctx context.Context, who Listed, v *Verdict) error {
	if who.Network.IsValid() {
		return fmt.Errorf("policy: %v is a network: look at one address", who.Network)
	}
	r := requestOf(who)
	v.begin(e.now(), r)
	a := e.ask(r)
	defer e.done(a)
	plan, err := e.planOf(who)
	if err != nil {
		return err
	}
	who.Who.Plan = plan
	for _, c := range e.clauses {
		a.name(c, who, v.Now)
	}
	if len(a.under) == 0 {
		return fmt.Errorf("policy: no limit counts %s by itself", who.Source)
	}
	a.lookAhead(ctx, v, false)
	e.peek(ctx, a, v)
	return v.Failed
}

// requestOf is a request of a client that is known by its value: overrides of a
// network hold for an address in it.
func requestOf(who Listed) *identity.Request {
	r := &identity.Request{Method: "GET", Path: "/"}
	if _, is := who.Source.(*identity.Address); !is {
		return r
	}
	text, _ := strings.CutPrefix(who.Who.ID, "address:")
	if p, err := netip.ParsePrefix(text); err == nil {
		r.Peer = p.Addr()
	} else if addr, err := netip.ParseAddr(text); err == nil {
		r.Peer = addr
	}
	return r
}

// planOf is a client's plan, as it is known without its credential.
func (e *Engine) planOf(who Listed) (string, error) {
	planner, ok := who.Source.(identity.Planner)
	if who.Who.Plan != "" || e.plans == nil || !ok || !planner.TellsPlans() {
		return who.Who.Plan, nil
	}
	plan, known := e.plans.of(who.Who.ID)
	if !known {
		return "", ErrPlan
	}
	return plan, nil
}

// name puts a client under a limit that can count it by itself.
func (a *asking) name(c *clause, who Listed, now comporta.Instant) {
	p := &c.parts[0]
	for i := range p.who.options {
		o := &p.who.options[i]
		if len(o.ids) != 1 || a.engine.leaves[o.ids[0]].source != who.Source {
			continue
		}
		u := under{clause: c, part: p, state: in, id: who.Who.ID, name: who.Who.Name, cost: 1}
		u.numbers = a.engine.numbers(a, p, o, who.Who, now)
		a.set(&u)
		a.under = append(a.under, u)
		return
	}
}

// peek asks the store for what it has, and makes the verdict that taking would.
func (e *Engine) peek(ctx context.Context, a *asking, v *Verdict) {
	a.peeks = true
	a.apply(v)
	if v.Failed == nil {
		v.Failed = e.takeAll(ctx, a, v, true)
	}
	if v.Failed != nil {
		e.fall(ctx, a, v)
		return
	}
	for i := range a.under {
		if u := &a.under[i]; u.counts && u.part.block != nil && !u.shadow && u.blocked == 0 && !v.Applied[u.applied].Decision.Allowed {
			v.Applied[u.applied].hold(v, u.part.limit.Block)
		}
	}
	v.name()
}

// foresee makes of a peek's decision what a take of the cost would be answered.
func (a *Applied) foresee(v *Verdict) {
	a.foreseen()
	if a.Denies() {
		v.deny(a.Decision.RetryAfter)
	} else if !a.Lenient && v.Allowed {
		v.Delay = max(v.Delay, a.Decision.Delay)
	}
}

func (a *Applied) foreseen() {
	d, l := &a.Decision, a.Rule.Limit()
	full := a.Rule.Full()
	switch {
	case a.Cost <= d.Remaining:
		if l.Algorithm == comporta.LeakyBucket && a.Cost > 0 {
			d.Delay = d.FullAfter // the level is what waits
		}
		return
	case a.Cost > full:
		d.Allowed, d.RetryAfter = false, comporta.Never
		return
	case l.Algorithm.Bucket():
		// FullAfter is the time of all that is taken, of which full − cost may stay.
		spare, _ := a.Rule.TimeFor(full - a.Cost)
		d.RetryAfter = max(d.FullAfter-time.Duration(spare)*time.Microsecond, time.Microsecond)
	case a.Cost == 1:
		d.RetryAfter = d.ResetAfter
	default:
		d.RetryAfter = d.FullAfter
	}
	if d.Allowed = d.RetryAfter <= l.MaxWait; d.Allowed {
		d.Delay, d.RetryAfter = d.RetryAfter, 0
	} else {
		d.RetryAfter -= l.MaxWait
	}
}

// resetter is a store that can forget keys.
type resetter interface {
	Reset(ctx context.Context, keys []comporta.Key) error
}

// errNoReset is of stores that cannot.
var errNoReset = errors.New("policy: the store cannot reset keys")

// Reset makes a client new under the limits of those names, or under all that can
// count it by itself where none is named: its budget is full, and it is denied no
// longer for what it did before. What a quota spent while the store could not answer
// is not charged to it any more. It is safe for concurrent use.
func (e *Engine) Reset(ctx context.Context, who Listed, limits ...string) error {
	store, ok := e.store.(resetter)
	if !ok {
		return errNoReset
	}
	keys, err := e.keys(who, limits)
	if err != nil {
		return err
	}
	e.fallback.debts.forget(keys)
	err = store.Reset(ctx, keys)
	if local, ok := e.fallback.local.(resetter); ok {
		err = errors.Join(err, local.Reset(ctx, keys))
	}
	return err
}

// keys are those of a client under limits.
func (e *Engine) keys(who Listed, limits []string) ([]comporta.Key, error) {
	var keys []comporta.Key
	a := e.ask(&identity.Request{})
	defer e.done(a)
	for _, c := range e.clauses {
		if len(limits) == 0 || slices.Contains(limits, c.limit.Name) {
			a.name(c, who, e.now())
		}
	}
	for _, name := range limits {
		if !slices.ContainsFunc(a.under, func(u under) bool { return u.part.limit.Name == name }) {
			return nil, fmt.Errorf("policy: no limit %q counts %s by itself", name, who.Source)
		}
	}
	if len(a.under) == 0 {
		return nil, fmt.Errorf("policy: no limit counts %s by itself", who.Source)
	}
	for i := range a.under {
		p := a.under[i].part
		keys = append(keys, comporta.Key{Limit: p.limit.Name, Identity: who.Who.ID})
		if p.block != nil {
			keys = append(keys, comporta.Key{Limit: p.limit.Name + blockName, Identity: who.Who.ID})
		}
	}
	return keys, nil
}

// Grant gives a client back units that it used under a limit, at most what it
// used, and is the decision of a peek afterwards. It is an error under a sliding
// log and a leaky bucket, which know what was taken when: reset the key there. It
// is safe for concurrent use.
func (e *Engine) Grant(ctx context.Context, who Listed, limit string, units int64) (comporta.Decision, error) {
	if units < 1 || units > comporta.MaxCost {
		return comporta.Decision{}, fmt.Errorf("policy: %d units to grant: from 1 to 2^53 − 1", units)
	}
	plan, err := e.planOf(who)
	if err != nil {
		return comporta.Decision{}, err
	}
	who.Who.Plan = plan
	a := e.ask(requestOf(who))
	defer e.done(a)
	for _, c := range e.clauses {
		if c.limit.Name == limit {
			a.name(c, who, e.now())
		}
	}
	if len(a.under) == 0 {
		return comporta.Decision{}, fmt.Errorf("policy: no limit %q counts %s by itself", limit, who.Source)
	}
	rule := a.under[0].numbers.rule
	switch rule.Algorithm() {
	case comporta.SlidingLog, comporta.LeakyBucket:
		return comporta.Decision{}, fmt.Errorf("policy: limit %q is a %v, which knows what was taken when: reset the client instead, or give it an override", limit, rule.Algorithm())
	}
	out := make([]comporta.Taken, 1)
	key := comporta.Key{Limit: limit, Identity: who.Who.ID}
	receipt := comporta.Receipt{At: e.now(), Cost: units}
	err = e.store.Settle(ctx, []comporta.Settlement{{Key: key, Rule: rule, Taken: receipt}}, out)
	return out[0].Decision, err
}

// Matches says whether a request is one of those that a limit is for, whoever asks.
// The limit is one of [Engine.Limits]. The request's path is clean, as for Check.
func (e *Engine) Matches(l *Limit, r *identity.Request) bool {
	for _, c := range e.all() {
		for i := range c.parts {
			if c.parts[i].limit == l {
				return c.applies(r, e.policy.Paths.read(r.Path))
			}
		}
	}
	return false
}
