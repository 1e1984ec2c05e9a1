package policy

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/comporta/comporta/identity"
)

// A who is a limit's Per as compiled: of its options the first that the request
// shows is the client.
type who struct {
	options []option
	forbid  bool // a request that shows none is refused
}

// An option is one source, or several as one client, by their places among the
// engine's leaves.
type option struct {
	// shown are the leaves that the request must all show.
	shown []int
	// ids are the leaves whose identities are the client's; none where the limit does
	// not hold who shows this option.
	ids []int
	// address: the client is told by the address, alone or with others.
	address bool
	// claimed: nobody proves it, and its new keys are bounded.
	claimed bool
}

// A leaf is a source that is not made of others.
type leaf struct {
	source  identity.Source
	prover  identity.Prover  // nil for a source that has nothing more to say
	planner identity.Planner // nil where no plan comes with a proof
}

// An answer is what a leaf said of the request, once it did.
type answer struct {
	who       identity.Who
	shown, is bool
	wrong     *identity.RequestError // why nobody can say who it is
}

// compileWho takes a limit's Per apart.
func (c *compiler) compileWho(l *Limit) who {
	var w who
	options := []identity.Source{l.Per}
	if first, ok := l.Per.(identity.First); ok {
		options = first
	}
	missing := l.OnMissing
	for _, s := range options {
		parts := []identity.Source{s}
		if all, ok := s.(identity.All); ok {
			parts = all
		}
		o, body := option{}, false
		for _, part := range parts {
			at := c.leaf(part)
			o.shown, o.ids = append(o.shown, at), append(o.ids, at)
			switch part.(type) {
			case *identity.Address:
				o.address = true
			case *identity.Claimed:
				o.claimed, body = true, true
			case identity.Header, identity.Path:
				o.claimed = o.claimed || c.engine.policy.Claimed.All
			}
		}
		if body && missing == Skip {
			missing = ByAddress
		}
		w.options = append(w.options, o)
	}
	switch missing {
	case ByAddress:
		at := c.leaf(c.engine.address)
		w.options = append(w.options, option{shown: []int{at}, ids: []int{at}, address: true})
	case Forbid:
		w.forbid = true
	}
	return w
}

// wider is the same, with an outer range in the address's place; what is not told
// by the address is not held by it.
func (c *compiler) wider(w who, outer map[int]int) who {
	wide := who{}
	for _, o := range w.options {
		ids := []int(nil)
		if o.address {
			for _, at := range o.ids {
				if other, is := outer[at]; is {
					at = other
				}
				ids = append(ids, at)
			}
		}
		o.ids = ids
		wide.options = append(wide.options, o)
	}
	return wide
}

// leaf is a source's place among the engine's: equal ones are asked once.
func (c *compiler) leaf(s identity.Source) int {
	e := c.engine
	for i := range e.leaves {
		o := e.leaves[i].source
		if reflect.ValueOf(o).Comparable() && reflect.ValueOf(s).Comparable() && o == s {
			return i
		}
	}
	prover, _ := s.(identity.Prover)
	planner, _ := s.(identity.Planner)
	e.leaves = append(e.leaves, leaf{s, prover, planner})
	return len(e.leaves) - 1
}

// answer asks a leaf, once a request, unless that is dearer than the stage: it is
// then nil, with the stage that it takes. A source that looks at the path's
// wildcards is asked anew for each limit, whose patterns have their own.
func (a *asking) answer(ctx context.Context, at int, stage identity.Stage, v *Verdict) (known *answer, takes identity.Stage) {
	known = &a.answers[at]
	if known.is {
		return known, 0
	}
	l := &a.engine.leaves[at]
	if l.prover == nil {
		a.asked = false
		known.who = identity.Who{}
		known.who.ID, known.shown = l.source.Identity(a.request)
		known.is = !a.asked
		return known, 0
	}
	if takes := l.prover.Stage(a.request); takes > stage {
		return nil, takes
	}
	var err error
	known.who, known.shown, err = l.prover.Prove(ctx, a.request)
	known.is = true
	if err == nil {
		if known.shown && l.planner != nil && a.engine.plans != nil && l.planner.TellsPlans() {
			a.engine.plans.remember(known.who.ID, known.who.Plan)
		}
		return known, 0
	}
	known.shown = false
	if wrong, ok := errors.AsType[*identity.RequestError](err); ok {
		known.wrong = wrong
		a.refuse(v, wrong)
		return known, 0
	}
	v.Unproved = append(v.Unproved, l.source)
	return known, 0
}

// missing is of requests that show no identity where one is asked for.
var missing = &identity.RequestError{Status: http.StatusUnauthorized, Detail: "This request needs a valid credential."}

// refuse refuses the request for what is found first.
func (a *asking) refuse(v *Verdict, why *identity.RequestError) {
	if v.Refused == nil {
		v.Refused = why
	}
}

// resolve finds out who is asking a limit as far as that is possible at the
// stage. It reports false, with the stage that it takes, where it is not.
func (a *asking) resolve(ctx context.Context, u *under, stage identity.Stage, v *Verdict) (takes identity.Stage, done bool) {
	w := &u.part.who
	a.clause = u.clause
options:
	for i := range w.options {
		o := &w.options[i]
		for _, at := range o.shown {
			known, takes := a.answer(ctx, at, stage, v)
			switch {
			case known == nil:
				return takes, false
			case !known.shown:
				continue options
			}
		}
		if o.ids == nil {
			break
		}
		return a.charge(ctx, u, o, stage, v)
	}
	if u.state = out; w.forbid {
		a.refuse(v, missing)
	}
	return 0, true
}

// charge settles whose budget a limit counts against, by which numbers, and for
// how much.
func (a *asking) charge(ctx context.Context, u *under, o *option, stage identity.Stage, v *Verdict) (takes identity.Stage, done bool) {
	cost, takes, done := a.cost(ctx, u.clause, stage, v)
	if !done {
		return takes, false
	}
	if main := u.part.main; main != nil && a.overridden(main) {
		// An override of an address has the whole say: the range around it, which has a
		// multiple of what others have, does not bind it.
		u.state = out
		return 0, true
	}
	who := a.identity(ctx, o, stage, v)
	if who.ID == "" { // the outer range of an address that has none
		u.state = out
		return 0, true
	}
	u.state, u.cost, u.id, u.name, u.claimed = in, cost, who.ID, who.Name, o.claimed
	u.numbers = a.engine.numbers(a, u.part, o, who, v.Now)
	return 0, true
}

// overridden says whether the request is under a part by an override's numbers.
func (a *asking) overridden(p *part) bool {
	for i := range a.under {
		if u := &a.under[i]; u.part == p {
			return u.state == in && u.numbers.override
		}
	}
	return false
}

// identity is the client of an option that the request shows.
func (a *asking) identity(ctx context.Context, o *option, stage identity.Stage, v *Verdict) identity.Who {
	if len(o.ids) == 1 {
		known, _ := a.answer(ctx, o.ids[0], stage, v)
		if !known.shown {
			return identity.Who{}
		}
		return known.who
	}
	var ids, names []string
	plan := ""
	for _, at := range o.ids {
		known, _ := a.answer(ctx, at, stage, v)
		if !known.shown {
			return identity.Who{}
		}
		ids, names = append(ids, known.who.ID), append(names, cmp.Or(known.who.Name, known.who.ID))
		if plan == "" {
			plan = known.who.Plan
		}
	}
	return identity.Who{ID: identity.Join(ids...), Plan: plan, Name: strings.Join(names, " + ")}
}
