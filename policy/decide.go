package policy

import (
	"context"
	"slices"

	"github.com/comporta/comporta"
)

// apply writes the limits that the request is under into the verdict, and what
// the store is to be asked onto the bench.
func (a *asking) apply(v *Verdict) {
	v.Applied, a.takes, a.of = v.Applied[:0], a.takes[:0], a.of[:0]
	for i := range a.under {
		u := &a.under[i]
		u.counts = u.state == in && (v.Refused == nil || !u.settles)
	}
	a.held = a.engine.looks && a.blocked()
	for i := range a.under {
		if a.under[i].counts {
			a.enter(i, v)
		}
	}
	if len(a.takes) == 0 {
		v.Failed = nil // the store was looked at for what nobody asks any more
	}
}

// enter is apply for one limit.
func (a *asking) enter(i int, v *Verdict) {
	u := &a.under[i]
	u.applied = len(v.Applied)
	v.Applied = grow(v.Applied)
	applied := &v.Applied[u.applied]
	u.tell(applied)
	if u.numbers.unlimited {
		_, applied.Decision = u.numbers.rule.Step(comporta.State{}, v.Now, u.cost)
		return
	}
	l := u.part.limit
	t := a.take(i, l.Name, u.id, u.numbers.rule)
	t.Cost, t.Shadow = u.cost, applied.Lenient
	if a.foresees(u) {
		t.Cost = 0
	}
	if u.fresh != "" && u.cost > 0 && !a.held && !a.peeks {
		t := a.take(-1, l.Name+freshName, u.fresh, u.part.fresh)
		t.Cost, t.Shadow = 1, true
	}
}

// blocked says whether a limit refuses the request for what its client did before.
func (a *asking) blocked() bool {
	for i := range a.under {
		if u := &a.under[i]; u.counts && u.blocked > 0 && u.part.limit.OnLimit == Refuse {
			return true
		}
	}
	return false
}

// foresees says whether the store is only asked what it has, and the decision is
// worked out of that: where nothing is to be spent, or the request is denied already
// and the limit does not charge attempts.
func (a *asking) foresees(u *under) bool {
	l := u.part.limit
	return a.peeks || a.held && (l.Limit.Charge != comporta.Attempts || u.shadow || l.OnLimit != Refuse)
}

// take is one more take on the bench.
func (a *asking) take(under int, limit, id string, rule *comporta.Rule) *comporta.Take {
	a.takes, a.of = grow(a.takes), append(a.of, under)
	t := &a.takes[len(a.takes)-1]
	t.Key.Limit, t.Key.Identity, t.Rule = limit, id, rule
	return t
}

// tell writes a limit's part in the verdict, all but the decision. It is written
// field by field where it lies.
func (u *under) tell(to *Applied) {
	l := u.part.limit
	to.Limit, to.Rule, to.Identity, to.Name = l, u.numbers.rule, u.id, u.name
	to.From, to.Cost, to.Receipt = u.numbers.from, u.cost, comporta.Receipt{}
	to.shadow, to.Lenient = u.shadow, u.shadow || l.OnLimit != Refuse
	to.Blocked, to.Warned = u.blocked > 0, false
	to.Shown, to.Fallen = l.shown(u.part.open, u.shadow, u.numbers.unlimited), Default
}

// grow is s and one more, whose fields are all to be set: they are those of its
// memory's last use.
func grow[T any](s []T) []T {
	if len(s) < cap(s) {
		return s[:len(s)+1]
	}
	var zero T
	return append(s, zero)
}

// decide asks the store and makes the verdict.
func (e *Engine) decide(ctx context.Context, a *asking, v *Verdict) {
	if v.Failed == nil {
		v.Failed = e.takeAll(ctx, a, v, false)
	}
	if v.Failed != nil {
		e.fall(ctx, a, v)
	} else {
		e.finish(ctx, a, v)
		if e.fallback.debts.waiting.Load() && len(a.takes) > 0 {
			e.repaySoon()
		}
	}
	v.refused()
}

// refused makes the verdict on a request that is refused for itself, unless a limit
// refuses it: that says more, namely when to come back.
func (v *Verdict) refused() {
	switch {
	case v.Refused == nil:
	case !v.Allowed:
		v.Refused = nil
	default:
		v.Allowed = false
		v.undelayed()
	}
}

// undelayed is a verdict on a request that goes nowhere.
func (v *Verdict) undelayed() {
	v.Delay = 0
	for i := range v.Applied {
		v.Applied[i].Decision.Delay = 0
	}
}

// refuseEarly takes under the limits that are known so far, of which one was
// seen to refuse the request. It reports false where it does not after all, with
// everything given back: then all have to be known.
func (e *Engine) refuseEarly(ctx context.Context, a *asking, v *Verdict) bool {
	a.apply(v)
	if v.Failed = e.takeAll(ctx, a, v, true); v.Failed != nil {
		return false
	}
	if !v.Allowed {
		e.finish(ctx, a, v)
		return true
	}
	a.blind = true
	var back []comporta.Settlement
	for i := range a.takes {
		if t := &a.takes[i]; a.decisions[i].Receipt.Cost > 0 {
			back = append(back, comporta.Settlement{Key: t.Key, Rule: t.Rule, Taken: a.decisions[i].Receipt})
		}
	}
	if len(back) > 0 {
		v.Failed = e.store.Settle(ctx, back, make([]comporta.Taken, len(back)))
	}
	return false
}

// forget is the verdict before any limit was asked.
func (v *Verdict) forget() {
	v.Applied, v.Named = v.Applied[:0], -1
	v.Outcome, v.Fallen = comporta.Outcome{Allowed: true}, Default
}

// takeAll asks the store, and puts its decisions and what they come to into the
// verdict. Where receipts are wanted it does not go by the door for single takes,
// which has none.
func (e *Engine) takeAll(ctx context.Context, a *asking, v *Verdict, receipts bool) error {
	switch {
	case len(a.takes) == 0:
		v.Outcome = comporta.Outcome{Allowed: true}
		return nil
	case len(a.takes) == 1 && e.one != nil && !receipts:
		if u := &a.under[a.of[0]]; !a.takes[0].Shadow && !u.settles && u.blocked == 0 {
			return e.takeOne(ctx, &a.takes[0], &v.Applied[u.applied].Decision, &v.Outcome)
		}
	}
	a.decisions = slices.Grow(a.decisions[:0], len(a.takes))[:len(a.takes)]
	if err := e.store.Take(ctx, a.takes, a.decisions); err != nil {
		return err
	}
	v.Outcome = comporta.Resolve(a.takes, a.decisions)
	for i, of := range a.of {
		if of < 0 {
			continue
		}
		u := &a.under[of]
		applied := &v.Applied[u.applied]
		applied.Decision, applied.Receipt = a.decisions[i].Decision, a.decisions[i].Receipt
		rest := u.blocked
		switch {
		case a.foresees(u):
			applied.foresee(v)
		case a.held: // it is charged for trying, and that may be what holds longest
			rest = max(rest, a.decisions[i].AskAgain)
			v.deny(rest)
		}
		if u.blocked > 0 {
			applied.hold(v, rest)
		}
	}
	if !v.Allowed && (a.held || a.peeks) {
		v.undelayed()
	}
	return nil
}

// takeOne asks the store by its door for single takes. The decision arrives in
// registers and is written field by field: copied as a whole, it would be read
// back in words wider than it was just written in, for which processors wait.
func (e *Engine) takeOne(ctx context.Context, t *comporta.Take, to *comporta.Decision, o *comporta.Outcome) error {
	d, err := e.one.TakeOne(ctx, t.Key, t.Rule, t.Cost)
	if err != nil {
		return err
	}
	to.Allowed, to.Limit, to.Remaining = d.Allowed, d.Limit, d.Remaining
	to.ResetAfter, to.FullAfter, to.RetryAfter, to.Delay = d.ResetAfter, d.FullAfter, d.RetryAfter, d.Delay
	o.Allowed, o.Delay, o.RetryAfter = d.Allowed, 0, 0
	if d.Allowed {
		o.Delay = d.Delay
	} else {
		o.RetryAfter = d.RetryAfter
	}
	return nil
}

// finish does what is left once the store has decided.
func (e *Engine) finish(ctx context.Context, a *asking, v *Verdict) {
	v.name()
	if !e.tells {
		return
	}
	blocks := false
	for i := range v.Applied {
		applied := &v.Applied[i]
		applied.warn(v.Allowed)
		blocks = blocks || !applied.Decision.Allowed && applied.Limit.Block > 0
	}
	if blocks || !v.Allowed {
		e.keepDenied(ctx, a, v)
		v.name()
	}
}

// warn says whether this request's units brought the use to where it is told of.
func (a *Applied) warn(charged bool) {
	at := a.Limit.WarnAt
	if at == 0 || !charged || !a.Decision.Allowed || a.Cost == 0 || a.Rule.Limit().Unlimited || a.Limit.Settles() {
		return // what an answer settles is known when it has: see Pending
	}
	a.Warned = a.passed(a.Cost)
}

// passed says whether the last so many units brought the use to Limit.WarnAt.
func (a *Applied) passed(units int64) bool {
	used := a.Decision.Limit - a.Decision.Remaining
	return a.past(used) && !a.past(used-units)
}

// past says whether so many units are Limit.WarnAt percent of the limit, or more.
func (a *Applied) past(used int64) bool {
	full := a.Decision.Limit
	return used >= full/100*int64(a.Limit.WarnAt)+(full%100*int64(a.Limit.WarnAt)+99)/100
}
