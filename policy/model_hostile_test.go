package policy_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
	"github.com/comporta/comporta/storetest"
)

// What looking foresees is what asking then gets, whatever the policy, and it
// spends nothing: looking again sees the same.
func TestLookForeseesWhatAnyPolicyAnswers(t *testing.T) {
	s := secret(t)
	rapid.Check(t, func(r *rapid.T) {
		town := newTown(t, s)
		h := open(t, *town.draw(r, s))
		var looked, again, asked policy.Verdict
		for range 30 {
			h.now = h.now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 500, 1000, 7000}).Draw(r, "pause")) * time.Millisecond)
			visit := town.visit(r)
			h.Look(t.Context(), town.request(visit), &looked)
			h.Look(t.Context(), town.request(visit), &again)
			h.Check(t.Context(), town.request(visit), &asked)
			a, b, c := tellOf(&looked), tellOf(&again), tellOf(&asked)
			if fmt.Sprint(a) != fmt.Sprint(b) {
				r.Fatalf("%+v: looked\n%+v, and again\n%+v", visit, a, b)
			}
			// Attempts are charged, and may then wait longer than what was looked at.
			late, slow := asked.RetryAfter-looked.RetryAfter, looked.Delay-asked.Delay
			tries := slices.ContainsFunc(asked.Applied, func(a policy.Applied) bool { return a.Limit.Limit.Charge == comporta.Attempts })
			if a.Allowed != c.Allowed || a.Listed != c.Listed || a.Status != c.Status ||
				slow < 0 || slow > time.Microsecond ||
				late < -time.Microsecond || late > 0 && !tries {
				r.Fatalf("%+v: looked\n%+v, and asked\n%+v", visit, a, c)
			}
		}
	})
}

// A store that fails at random, in whatever way, leaves verdicts that agree with
// themselves.
func TestVerdictsOfAFailingStoreAreConsistent(t *testing.T) {
	s := secret(t)
	rapid.Check(t, func(r *rapid.T) {
		town := newTown(t, s)
		p := town.draw(r, s)
		for _, l := range p.Limits {
			l.OnError = policy.OnError(rapid.IntRange(0, 3).Draw(r, "on error"))
		}
		now := epoch
		clock := func() time.Time { return now }
		store := &storetest.Faults{Store: memory(t, clock), Script: storetest.Random(rapid.Uint64().Draw(r, "seed"), 3)}
		e, err := policy.NewEngine(p, store, policy.Options{Now: clock, Local: memory(t, clock)})
		if err != nil {
			r.Fatal(err)
		}
		var v policy.Verdict
		for range 40 {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 500, 1000}).Draw(r, "pause")) * time.Millisecond)
			look := rapid.IntRange(0, 3).Draw(r, "look") == 0
			if visit := town.visit(r); look {
				e.Look(t.Context(), town.request(visit), &v)
			} else {
				e.Check(t.Context(), town.request(visit), &v)
			}
			if wrong := inconsistent(&v); wrong != "" {
				r.Fatalf("%s (look: %v): %+v", wrong, look, v)
			}
		}
	})
}

// inconsistent is what is wrong with a verdict; "" for nothing.
func inconsistent(v *policy.Verdict) string {
	denies := slices.ContainsFunc(v.Applied, func(a policy.Applied) bool { return a.Denies() })
	switch {
	case v.Refused != nil && v.Allowed:
		return "refused, and allowed"
	case v.Listed && (!v.Allowed || v.Refused != nil || v.Failed != nil || len(v.Applied) > 0):
		return "listed, and asked"
	case v.Allowed && (v.RetryAfter != 0 || denies):
		return "allowed, and denied by a limit"
	case !v.Allowed && v.Refused == nil && !denies:
		return "denied by nobody"
	case !v.Allowed && v.Refused == nil && v.RetryAfter <= 0:
		return "denied until now"
	case !v.Allowed && v.Delay != 0:
		return "denied, and delayed"
	case (v.Failed == nil) != (v.Fallen == policy.Default):
		return "failed without falling, or fell without a failure"
	case v.Named >= len(v.Applied) || v.Named >= 0 && !v.Applied[v.Named].Shown:
		return "names what is not shown"
	}
	for _, a := range v.Applied {
		switch {
		case a.Identity == "" || a.Limit == nil || a.Rule == nil || a.From == "":
			return "a part is not filled in"
		case v.Failed == nil && a.Fallen != policy.Default:
			return "a part fell by itself"
		case !v.Allowed && a.Decision.Delay != 0:
			return "a part of a denial is delayed"
		case a.Blocked && a.Decision.Allowed:
			return "blocked, and allowed"
		}
	}
	return ""
}

// While the store fails at random, between any two calls, no more passes than the
// limit; where the local store decides meanwhile, no more than both have.
func TestAFailingStoreAdmitsNoMoreThanTheLimit(t *testing.T) {
	s := secret(t)
	rapid.Check(t, func(r *rapid.T) {
		onError := rapid.SampledFrom([]policy.OnError{policy.Deny, policy.Local}).Draw(r, "on error")
		town := newTown(t, s)
		p := limits(
			limit(t, "address", "6/h as fixed_window", func(l *policy.Limit) {
				l.OnError = onError
				l.Block = time.Duration(rapid.IntRange(0, 2).Draw(r, "block")) * time.Minute
			}),
			limit(t, "users", "4/min", per(town.user)),
			limit(t, "account", "3/min", per(town.name), func(l *policy.Limit) { l.Block = time.Minute }),
		)
		p.Address = socket
		now := epoch
		clock := func() time.Time { return now }
		store := &storetest.Faults{Store: memory(t, clock), Script: storetest.Random(rapid.Uint64().Draw(r, "seed"), 3)}
		e, err := policy.NewEngine(&p, store, policy.Options{Now: clock, Local: memory(t, clock)})
		if err != nil {
			r.Fatal(err)
		}
		passed := map[string]int{}
		var v policy.Verdict
		for range 60 {
			now = now.Add(time.Duration(rapid.IntRange(0, 59).Draw(r, "pause")) * time.Second)
			visit := town.visit(r)
			if e.Check(t.Context(), town.request(visit), &v); v.Allowed {
				passed[visit.peer]++
			}
		}
		most := 6
		if onError == policy.Local {
			most = 12
		}
		for peer, n := range passed {
			if n > most {
				r.Fatalf("%d of %s pass, of %d", n, peer, most)
			}
		}
	})
}

// Engines that follow one another, each with smaller numbers, while run-time
// overrides of another limit come and go, admit no more than the first allowed.
func TestNoReloadAdmitsMoreThanTheLargestBound(t *testing.T) {
	const most, smaller = 60, 40
	store, err := memstore.New(memstore.Options{Now: func() time.Time { return epoch }})
	if err != nil {
		t.Fatal(err)
	}
	user := &identityOf{}
	var serving atomic.Pointer[policy.Engine]
	engine := func(bound int) *policy.Engine {
		p := limits(
			limit(t, "address", fmt.Sprintf("%d/h as fixed_window", bound)),
			limit(t, "users", "1000/h as fixed_window", per(identity.First{user, socket})),
		)
		e, err := policy.NewEngine(&p, store, policy.Options{Now: func() time.Time { return epoch }, Before: serving.Load()})
		if err != nil {
			t.Fatal(err)
		}
		if before := serving.Load(); before != nil {
			e.Follow(before)
		}
		return e
	}
	serving.Store(engine(most))
	var passed [4]atomic.Int64
	var asking, changing sync.WaitGroup
	done := make(chan struct{})
	for worker := range 4 {
		asking.Go(func() {
			var v policy.Verdict
			for i := range 200 {
				client := i % len(passed)
				r := request("GET", "/", fmt.Sprintf("203.0.113.%d", client), "X-User", "u")
				if i%5 == worker {
					serving.Load().Look(t.Context(), r, &v)
				} else if serving.Load().Check(t.Context(), r, &v); v.Allowed {
					passed[client].Add(1)
				}
				if v.Failed != nil {
					t.Error(v.Failed)
				}
			}
		})
	}
	changing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			serving.Store(engine(max(smaller, most-i)))
		}
	})
	changing.Go(func() {
		network := &policy.Override{Who: policy.Listed{Network: prefix("203.0.113.0/31")}, Limits: map[string]comporta.Limit{"users": numbers(t, "2000/h")}}
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if err := serving.Load().SetOverrides([]*policy.Override{network}[:i%2]); err != nil {
				t.Error(err)
			}
			serving.Load().Overrides()
		}
	})
	asking.Wait()
	close(done)
	changing.Wait()
	for i := range passed {
		if n := passed[i].Load(); n > most {
			t.Errorf("%d pass of client %d, of at most %d", n, i, most)
		}
	}
}

// identityOf is a credential that is safe to prove at once, as all are but those
// of tests.
type identityOf struct{ identity.Everyone }

func (*identityOf) Stage(*identity.Request) identity.Stage { return identity.Credential }

func (i *identityOf) Prove(_ context.Context, r *identity.Request) (identity.Who, bool, error) {
	id, shown := i.Identity(r)
	return identity.Who{ID: id}, shown, nil
}
