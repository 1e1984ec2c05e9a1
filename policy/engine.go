package policy

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
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
	// Before is the engine that this one follows, with the same stores, such as that of
	// a policy file before it was changed: run-time overrides, and what quotas owe the
	// store, go on. Overrides of limits that are gone wait until they are back.
	Before *Engine
}

// An Engine enforces a policy on a store. It is safe for concurrent use.
type Engine struct {
	policy  *Policy
	store   comporta.Store
	one     comporta.Taker // the store's door for single takes, where it has one
	now     func() comporta.Instant
	clauses []*clause
	// preflights is what preflights stand under: one limit, or none.
	preflights []*clause
	address    *identity.Address
	leaves     []leaf // the sources that limits and lists ask
	lists      lists
	maxBody    int
	secret     *identity.Secret
	narrow     bool // a limit matches by path
	plain      bool // see asking.plain
	looks      bool // a limit has keys beside its own that are looked at first
	tells      bool // a limit has something to do once it has decided
	scratch    sync.Pool
	fallback   fallback

	plans     *lastPlans // nil where the policy has none
	overrides atomic.Pointer[table]
	setting   sync.Mutex  // held by who sets run-time overrides
	runTime   []*Override // as they were set
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
	if e.secret = p.Secret; e.secret == nil {
		e.secret = new(identity.Secret)
	}
	e.fallback.debts = new(debts)
	if o.Before != nil {
		e.fallback.debts = o.Before.fallback.debts
	}
	if err := e.compile(); err != nil {
		return nil, err
	}
	if o.Before != nil {
		if e.plans != nil {
			e.plans = cmp.Or(o.Before.plans, e.plans)
		}
		e.setting.Lock()
		defer e.setting.Unlock()
		if err := e.override(o.Before.Overrides(), true); err != nil {
			return nil, err
		}
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
	return slices.Concat(e.clauses, e.preflights)
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
// What is cheap comes before what is dear ([identity.Stage]). Where somebody has to
// be asked or a signature verified to know a client, the limits whose clients are
// known are looked at first, and the body is read for nobody whom another limit
// refuses: the verdict is then that of the limits known so far. A request that
// turns out to be refused for itself ([Verdict.Refused]) is charged to the limits
// that were known by then, those aside that its answer would have settled.
//
// It sets the request's PathValues while it runs. It allocates the texts of
// identities and, with FoldCase, a path that has capitals; nothing else while
// the store answers.
func (e *Engine) Check(ctx context.Context, r *identity.Request, v *Verdict) {
	v.begin(e.now(), r)
	a := e.ask(r)
	defer e.done(a)
	if e.plain && e.overrides.Load() == nil {
		a.plain(v)
		e.decide(ctx, a, v)
		return
	}
	if e.lists.byNetwork(a, v) {
		return
	}
	if !a.free {
		a.gather(v.Preflight)
	}
	for stage := identity.Look; ; {
		next, wait := a.learn(ctx, stage, v)
		if e.lists.byClient(a, v) {
			return
		}
		if v.Refused != nil || !wait {
			break
		}
		if !a.free && a.lookAhead(ctx, v, true) {
			if e.refuseEarly(ctx, a, v) {
				return
			}
			v.forget()
		}
		stage = next
	}
	a.lookAhead(ctx, v, false)
	a.apply(v)
	e.decide(ctx, a, v)
}

// begin is a verdict before anything is known.
func (v *Verdict) begin(now comporta.Instant, r *identity.Request) {
	v.Outcome, v.Now, v.Named = comporta.Outcome{Allowed: true}, now, -1
	v.Applied, v.Preflight, v.Fallen, v.Failed = v.Applied[:0], isPreflight(r), Default, nil
	v.Refused, v.Listed, v.Unproved = nil, false, v.Unproved[:0]
}

// isPreflight says whether a browser asks beforehand what it may ask.
func isPreflight(r *identity.Request) bool {
	return r.Method == "OPTIONS" && shows(r, "Origin") && shows(r, "Access-Control-Request-Method")
}

func shows(r *identity.Request, header string) bool {
	lines := r.Header[header]
	return len(lines) > 0 && lines[0] != ""
}
