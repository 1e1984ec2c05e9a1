package policy

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
)

// Options are what an engine needs besides its policy. The zero Options are ready.
type Options struct {
	// Now is the clock that verdicts are dated by; the wall clock unless said, which
	// is followed within a second where it is set. What is decided hangs on the
	// store's clock alone.
	Now func() time.Time
	// Local decides for limits whose [OnError] is Local while the store cannot
	// answer, such as a memory store; nil where none does. It keeps what was spent
	// in it from one outage to the next, so it is not to be the store of anything else.
	//
	// Each limit is then divided, limit and burst, by the number of instances,
	// rounded up, and a key starts from what was last known of it, where the store
	// has the methods
	//
	//	Instances() int
	//	Known(comporta.Key) (d comporta.Decision, age time.Duration, ok bool)
	//
	// of which the second is the last answer about a key and how old it is. What a
	// quota spent locally is charged to the store when it answers again ([Engine.Repay]).
	Local comporta.Store
}

// An Engine enforces a policy on a store. It is safe for concurrent use.
type Engine struct {
	policy    *Policy
	store     comporta.Store
	one       comporta.Taker // the store's door for single takes, where it has one
	now       func() comporta.Instant
	clauses   []*clause
	preflight *clause // nil where preflights stand under no limit
	sources   []identity.Source
	narrow    bool // a limit matches by path
	scratch   sync.Pool
	fallback  fallback
}

// NewEngine checks and compiles a policy. Its error joins an [*Error] for each
// fault, in policy order. The policy is the engine's from then on.
func NewEngine(p *Policy, store comporta.Store, o Options) (*Engine, error) {
	e := &Engine{policy: p, store: store, now: newWall().now}
	if o.Now != nil {
		e.now = func() comporta.Instant { return comporta.InstantOf(o.Now()) }
	}
	e.one, _ = store.(comporta.Taker)
	e.fallback.local, e.fallback.seed = o.Local, maphash.MakeSeed()
	e.fallback.store, _ = store.(informed)
	if err := e.compile(); err != nil {
		return nil, err
	}
	return e, nil
}

// Policy is what the engine enforces; it is not to be changed.
func (e *Engine) Policy() *Policy { return e.policy }

// Limits are all limits that a verdict can apply, in policy order: with those by
// the wider IPv6 prefix, without those that are off, and the preflight's last.
func (e *Engine) Limits() []*Limit {
	var limits []*Limit
	for _, c := range e.all() {
		for i := range c.parts {
			limits = append(limits, c.parts[i].limit)
		}
	}
	return limits
}

func (e *Engine) all() []*clause {
	all := append([]*clause(nil), e.clauses...)
	if e.preflight != nil {
		all = append(all, e.preflight)
	}
	return all
}

// CleanPath reads the escaped path of a request as [Paths.Clean] does, with one
// more mercy: semicolons pass where no limit of the policy matches by path.
func (e *Engine) CleanPath(escaped string) (forward, decoded string, err error) {
	return clean(escaped, e.policy.Paths.Loose, e.policy.Paths.Loose || !e.narrow)
}

// Check asks all the limits that a request is under in one step, all or nothing,
// and fills in the verdict. A request that no limit is under is allowed and
// does not reach the store. A CORS preflight stands under the preflight limit
// alone.
//
// It sets the request's PathValues while it runs. It allocates the texts of
// identities and, with FoldCase, a path that has capitals; nothing else while
// the store answers.
func (e *Engine) Check(ctx context.Context, r *identity.Request, v *Verdict) {
	v.Outcome, v.Now = comporta.Outcome{Allowed: true}, e.now()
	v.Applied, v.Preflight, v.Fallen = v.Applied[:0], isPreflight(r), Default
	a := e.ask(r)
	defer e.done(a)
	if v.Preflight {
		if e.preflight != nil {
			a.add(e.preflight, v)
		}
	} else {
		for _, c := range e.clauses {
			if c.applies(r, a.path) {
				a.add(c, v)
			}
		}
	}
	if v.Failed = e.take(ctx, a, v); v.Failed != nil {
		e.fall(ctx, a, v)
		return
	}
	v.name()
	if e.fallback.debts.waiting.Load() && len(a.takes) > 0 {
		e.repaySoon()
	}
}

// isPreflight says whether a browser asks beforehand what it may ask.
func isPreflight(r *identity.Request) bool {
	return r.Method == "OPTIONS" && shows(r, "Origin") && shows(r, "Access-Control-Request-Method")
}

func shows(r *identity.Request, header string) bool {
	lines := r.Header[header]
	return len(lines) > 0 && lines[0] != ""
}

// take asks the store, and puts its decisions and what they come to into the verdict.
func (e *Engine) take(ctx context.Context, a *asking, v *Verdict) error {
	switch {
	case len(a.takes) == 0:
		return nil
	case len(a.takes) == 1 && e.one != nil && !a.takes[0].Shadow:
		return e.takeOne(ctx, &a.takes[0], &v.Applied[a.applied[0]].Decision, &v.Outcome)
	}
	a.decisions = slices.Grow(a.decisions[:0], len(a.takes))[:len(a.takes)]
	if err := e.store.Take(ctx, a.takes, a.decisions); err != nil {
		return err
	}
	v.Outcome = comporta.Resolve(a.takes, a.decisions)
	for i, at := range a.applied {
		v.Applied[at].Decision = a.decisions[i].Decision
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
	if o.Allowed = d.Allowed; d.Allowed {
		o.Delay = d.Delay
	} else {
		o.RetryAfter = d.RetryAfter
	}
	return nil
}
