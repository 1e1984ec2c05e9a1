package policy

import (
	"context"
	"slices"

	"github.com/comporta/comporta"
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
	if a.blind || v.Failed != nil || !all && !a.engine.looks {
		return false
	}
	l := &a.looks
	l.clear()
	for i := range a.under {
		u := &a.under[i]
		if u.state != in || u.numbers.unlimited {
			continue
		}
		p := u.part
		if all && !u.passes() {
			l.add(i, atBudget, p.limit.Name, u.id, u.numbers.rule)
		}
		if p.block != nil && !u.shadow && !u.looked {
			u.looked = true
			l.add(i, atBlock, p.limit.Name+blockName, u.id, p.block)
		}
		if !all && u.claimed && p.fresh != nil {
			u.fresh, _ = a.engine.address.Identity(a.request)
			l.add(i, atClaim, p.limit.Name, u.id, u.numbers.rule)
			l.add(i, atFresh, p.limit.Name+freshName, u.fresh, p.fresh)
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
		u, d := &a.under[of.under], &l.out[i].Decision
		switch of.kind {
		case atBudget:
			over = over || d.Remaining < u.cost
		case atBlock:
			if d.Remaining == 0 {
				u.block(d)
				over = over || !u.passes()
			}
		case atClaim:
			if d.FullAfter > 0 {
				u.fresh = "" // the store knows the key
			}
		case atFresh:
			if u.fresh != "" && d.Remaining == 0 {
				u.id, u.name, u.fresh, u.numbers = u.fresh, "", "", &u.part.own
			}
		}
	}
	return over
}

// passes says whether the limit refuses nobody, or none that may wait.
func (u *under) passes() bool {
	l := u.part.limit
	return u.shadow || l.OnLimit != Refuse || l.Limit.MaxWait > 0
}

// block notes that the client is denied, as the key says that keeps it so.
func (u *under) block(d *comporta.Decision) {
	u.blocked = &comporta.Decision{
		Limit: u.numbers.rule.Full(), ResetAfter: d.ResetAfter, FullAfter: d.FullAfter, RetryAfter: d.ResetAfter,
	}
}

// What is put behind a limit's name to name the keys beside its own.
const (
	blockName = ".block"
	freshName = ".new"
)

// blockDenied keeps clients denied whom a limit denied that does so.
func (e *Engine) blockDenied(ctx context.Context, a *asking, v *Verdict) {
	l := &a.looks
	l.clear()
	for i := range a.under {
		u := &a.under[i]
		if u.state != in || u.part.block == nil || u.shadow || u.blocked != nil || v.Applied[u.applied].Decision.Allowed {
			continue
		}
		l.add(i, atBlock, u.part.limit.Name+blockName, u.id, u.part.block)
		t := &l.takes[len(l.takes)-1]
		t.Cost, t.Shadow = 1, true
	}
	if len(l.takes) == 0 {
		return
	}
	l.out = slices.Grow(l.out[:0], len(l.takes))[:len(l.takes)]
	if e.store.Take(ctx, l.takes, l.out) != nil {
		return // the limit itself still holds
	}
	for i, of := range l.of {
		d := &v.Applied[a.under[of.under].applied].Decision
		d.RetryAfter = max(d.RetryAfter, l.out[i].ResetAfter)
		if v.Applied[a.under[of.under].applied].Denies() {
			v.RetryAfter = max(v.RetryAfter, d.RetryAfter)
		}
	}
}
