package policy

import (
	"context"
	"slices"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
)

// looks are what the store is asked before a request is decided, spending nothing:
// budgets before something dear is done, whether a client is denied for what it did
// before, whether a claimed client is one that the store knows.
type looks struct {
	takes []comporta.Take
	out   []comporta.Taken
	of    []look
}

// look is what one of them is for.
type look struct {
	under int
	kind  lookKind
}

type lookKind uint8

const (
	atBudget lookKind = iota // of the limit
	atBlock                  // of the key that keeps the client denied
	atClaim                  // of the limit, for whether its key is new
	atFresh                  // of new keys, of the client's address
)

func (l *looks) clear() {
	for i := range l.takes {
		l.takes[i].Key.Identity = ""
	}
	l.takes, l.of = l.takes[:0], l.of[:0]
}

func (l *looks) add(under int, kind lookKind, limit, id string, rule *comporta.Rule) {
	l.takes = append(l.takes, comporta.Take{Key: comporta.Key{Limit: limit, Identity: id}, Rule: rule})
	l.of = append(l.of, look{under, kind})
}

// lookAhead looks at what is to be known before the request is decided; where all
// is set, at the budgets too, and reports whether one of them, as it stands,
// refuses the request. Where the store fails, nothing is looked at any more.
func (a *asking) lookAhead(ctx context.Context, v *Verdict, all bool) (over bool) {
	if v.Failed != nil || all && a.blind || !all && !a.engine.looks {
		return false
	}
	l := &a.looks
	l.clear()
	for i := range a.under {
		if u := &a.under[i]; u.state == in && !u.numbers.unlimited {
			a.lookAt(i, all && !u.passes())
		}
	}
	if len(l.takes) == 0 {
		return false
	}
	l.out = slices.Grow(l.out[:0], len(l.takes))[:len(l.takes)]
	if v.Failed = a.engine.store.Take(ctx, l.takes, l.out); v.Failed != nil {
		for i := range a.under {
			a.under[i].fresh = ""
		}
		return false
	}
	for i, of := range l.of {
		u := &a.under[of.under]
		a.saw(u, of.kind, &l.takes[i].Key, &l.out[i].Decision, v)
		over = over || of.kind == atBudget && l.out[i].Remaining < u.cost || u.blocked > 0 && !u.passes()
	}
	return over
}

// lookAt puts on the bench what is looked at for one limit: the budget every time
// that it is wanted, the rest once.
func (a *asking) lookAt(i int, budget bool) {
	u, l := &a.under[i], &a.looks
	p := u.part
	name := p.limit.Name
	if budget {
		l.add(i, atBudget, name, u.id, u.numbers.rule)
	}
	if u.looked {
		return
	}
	u.looked = true
	blocks := p.block != nil && !u.shadow
	if blocks {
		l.add(i, atBlock, name+blockName, u.id, p.block)
	}
	if !u.claimed || p.fresh == nil || u.numbers.override { // whom an operator named is known
		return
	}
	u.fresh, _ = a.engine.address.Identity(a.request)
	if !budget {
		l.add(i, atClaim, name, u.id, u.numbers.rule)
	}
	l.add(i, atFresh, name+freshName, u.fresh, p.fresh)
	if blocks {
		l.add(i, atBlock, name+blockName, u.fresh, p.block)
	}
}

// byAddress is the option that the address alone is.
var byAddress = option{address: true}

// saw makes use of what one look found.
func (a *asking) saw(u *under, kind lookKind, key *comporta.Key, d *comporta.Decision, v *Verdict) {
	switch {
	case kind == atBlock && key.Identity == u.id && d.Remaining == 0 && !u.numbers.unlimited:
		u.blocked, u.fresh = d.ResetAfter, ""
	case (kind == atBudget || kind == atClaim) && d.FullAfter > 0:
		u.fresh = "" // the store knows the key
	case kind == atFresh && u.fresh != "" && d.Remaining == 0:
		u.id, u.name, u.fresh = u.fresh, "", ""
		u.numbers = a.engine.numbers(a, u.part, &byAddress, identity.Who{ID: u.id}, v.Now)
		a.set(u)
	}
}

// passes says whether the limit refuses nobody, or none that may wait.
func (u *under) passes() bool {
	l := u.part.limit
	return u.shadow || l.OnLimit != Refuse || l.Limit.MaxWait > 0
}

// What is put behind a limit's name to name the keys beside its own.
const (
	blockName = ".block"
	freshName = ".new"
)

// keepDenied keeps clients denied whom a limit denied that does so. Among new keys
// it counts those that a denied request makes all the same: of a limit that charges
// attempts, and of one that keeps who is denied.
func (e *Engine) keepDenied(ctx context.Context, a *asking, v *Verdict) {
	l := &a.looks
	l.clear()
	for i := range a.under {
		u := &a.under[i]
		if !u.counts || u.shadow || u.blocked > 0 {
			continue
		}
		p := u.part
		blocks := p.block != nil && !v.Applied[u.applied].Decision.Allowed
		if blocks {
			l.add(i, atBlock, p.limit.Name+blockName, u.id, p.block)
		}
		if !v.Allowed && u.fresh != "" && (blocks || u.cost > 0 && p.limit.Limit.Charge == comporta.Attempts && p.limit.OnLimit == Refuse) {
			l.add(i, atFresh, p.limit.Name+freshName, u.fresh, p.fresh)
		}
	}
	if len(l.takes) == 0 {
		return
	}
	for i := range l.takes {
		l.takes[i].Cost, l.takes[i].Shadow = 1, true
	}
	l.out = slices.Grow(l.out[:0], len(l.takes))[:len(l.takes)]
	if e.store.Take(ctx, l.takes, l.out) != nil {
		return // the limit itself still holds
	}
	for i, of := range l.of {
		if of.kind == atBlock {
			v.Applied[a.under[of.under].applied].hold(v, l.out[i].ResetAfter)
		}
	}
}

// hold makes the limit's decision one that denies for so long, or longer.
func (a *Applied) hold(v *Verdict, rest time.Duration) {
	d := &a.Decision
	d.Allowed, d.Remaining, d.Delay = false, 0, 0
	d.ResetAfter, d.FullAfter, d.RetryAfter = max(d.ResetAfter, rest), max(d.FullAfter, rest), max(d.RetryAfter, rest)
	if a.Denies() {
		v.deny(d.RetryAfter)
	}
}

// deny is an outcome that refuses the request, for so long at least.
func (v *Verdict) deny(retry time.Duration) {
	v.Allowed, v.Delay, v.RetryAfter = false, 0, max(v.RetryAfter, retry)
}
