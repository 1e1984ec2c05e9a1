package policy

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta"
)

// retryDown is when to ask again where only the store knows better: stores look
// for their servers more often, and no header field tells less.
const retryDown = time.Second

// fallback decides while the store cannot. It is safe for concurrent use.
type fallback struct {
	onError OnError
	local   comporta.Store // nil where no limit falls to it
	store   informed       // the store itself; nil where it tells nothing
	debts   *debts         // of this engine and those it follows

	// starts are locked while a key's local budget is brought down to what was last
	// known of it, so that this is done once. A key's is by its hash.
	starts [64]sync.Mutex
	seed   maphash.Seed
}

// informed is a store that also says what those need to know who decide without it.
type informed interface {
	// Instances is how many instances ask the store, as last known.
	Instances() int
	// Known is the last answer about a key and how long ago it was given.
	Known(key comporta.Key) (d comporta.Decision, age time.Duration, ok bool)
}

// spare is what there is of a limit when the store cannot answer.
type spare struct {
	onError OnError
	rule    *comporta.Rule // the limit's own, undivided
	quota   bool
	share   atomic.Pointer[share] // the one in use: their number seldom changes
}

// share is one instance's part of a limit.
type share struct {
	of   int // instances
	rule *comporta.Rule
	// quiet has the same numbers, and spends only what there is at once: for takes
	// in nobody's name.
	quiet *comporta.Rule
}

// fall makes the verdict on a request that the store could not answer.
func (e *Engine) fall(ctx context.Context, a *asking, v *Verdict) {
	v.Outcome, v.Named = comporta.Outcome{Allowed: true}, -1
	if ctx.Err() != nil {
		v.Outcome.Allowed = false
		for i := range v.Applied {
			v.Applied[i].Decision, v.Applied[i].Shown = comporta.Decision{}, false
		}
		return
	}
	for _, of := range a.of {
		if of < 0 {
			continue
		}
		u := &a.under[of]
		applied := &v.Applied[u.applied]
		applied.Blocked = false // the store alone keeps that
		if applied.Fallen = u.numbers.spare.onError; applied.Fallen == Deny && applied.Lenient {
			applied.Fallen = Allow
		}
		v.Fallen = max(v.Fallen, applied.Fallen)
	}
	switch v.Fallen {
	case Deny:
		v.Outcome = comporta.Outcome{RetryAfter: retryDown}
		for applied := range a.told(v) {
			applied.undecided(applied.Fallen)
			applied.Fallen = Deny
		}
		return
	case Local:
		if err := e.fallback.take(ctx, a, v); err != nil {
			v.Failed, v.Fallen = errors.Join(v.Failed, err), Allow
		}
	}
	for applied := range a.told(v) {
		if applied.Fallen != Local || v.Fallen != Local {
			applied.undecided(Allow)
		}
	}
	v.name()
}

// told are the limits' parts in the verdict that the store was to decide.
func (a *asking) told(v *Verdict) func(yield func(*Applied) bool) {
	return func(yield func(*Applied) bool) {
		for _, of := range a.of {
			if of >= 0 && !yield(&v.Applied[a.under[of].applied]) {
				return
			}
		}
	}
}

// undecided makes the limit's part that of one which nobody was asked about.
func (a *Applied) undecided(fallen OnError) {
	a.Fallen, a.Shown = fallen, false
	a.Decision = comporta.Decision{Allowed: fallen != Deny}
}

// take asks the local store under this instance's shares, several at once all or
// nothing, and puts its decisions and what they come to into the verdict.
func (f *fallback) take(ctx context.Context, a *asking, v *Verdict) error {
	instances := 1
	if f.store != nil {
		instances = max(1, f.store.Instances())
	}
	var under []*under
	var takes []comporta.Take
	for i, t := range a.takes {
		if a.of[i] < 0 {
			continue
		}
		u := &a.under[a.of[i]]
		if v.Applied[u.applied].Fallen != Local {
			continue
		}
		s := u.numbers.spare
		part := s.divide(instances)
		f.start(ctx, t.Key, s.rule, part, v.Now)
		if t.Rule = part.rule; !a.peeks {
			t.Cost = u.cost
		}
		under, takes = append(under, u), append(takes, t)
	}
	out := make([]comporta.Taken, len(takes))
	if err := f.local.Take(ctx, takes, out); err != nil {
		return err
	}
	for i, u := range under {
		t, d, applied := &takes[i], &out[i], &v.Applied[u.applied]
		s := u.numbers.spare
		if d.AskAgain == comporta.Never && t.Cost <= s.rule.Full() {
			d.AskAgain, d.RetryAfter = retryDown, retryDown // over the share, not over the limit
		}
		applied.Decision, applied.Rule, applied.Receipt = d.Decision, t.Rule, d.Receipt
		if s.quota && d.Receipt.Cost > 0 {
			f.debts.add(t.Key, debt{s.rule, d.Receipt.Cost, d.Receipt.At, d.Receipt.At.Add(d.FullAfter)})
		}
	}
	v.Outcome = comporta.Resolve(takes, out)
	return nil
}

// divide is the limit among so many instances: limit and burst divided, rounded
// up, so that none is left with nothing of a small one; all else is as it is.
func (s *spare) divide(instances int) *share {
	if have := s.share.Load(); have != nil && have.of == instances {
		return have
	}
	part := s.rule.Limit()
	part.Limit, part.Burst, part.Lease = among(part.Limit, instances), among(part.Burst, instances), nil
	quiet := part
	quiet.Charge, quiet.MaxWait = comporta.Admitted, 0
	made := &share{instances, compiled(part), compiled(quiet)}
	s.share.Store(made)
	return made
}

// among is units / n rounded up.
func among(units int64, n int) int64 {
	return units/int64(n) + min(1, units%int64(n))
}

// compiled is the rule of a share. It has one: a burst that was rounded up may
// take just over the 100 years to fill that a bucket may take, one less does not.
func compiled(l comporta.Limit) *comporta.Rule {
	rule, err := l.Compile()
	for ; err != nil; rule, err = l.Compile() {
		l.Burst--
	}
	return rule
}
