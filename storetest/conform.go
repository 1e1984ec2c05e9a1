package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/comporta/comporta"
	"pgregory.net/rapid"
)

// answersAsTheModel asks a store and the model the same, in one world after the
// other, one take at a time through TakeOne or many.
func answersAsTheModel(t *testing.T, open Open, how asking) {
	clock := &Clock{}
	store := open(t, clock.Now)
	one, ok := store.(comporta.Taker)
	if how.single && !ok {
		t.Skip("the store has no TakeOne")
	}
	_, resets := store.(comporta.Resetter)
	var runs atomic.Int64
	inWorlds(t, func(rt *rapid.T) {
		w := newWorld(rt, runs.Add(1))
		w.clock, w.store, w.model.Now = clock, store, clock.Now
		w.apart = how.apart
		if how.single {
			w.one = one
		}
		clock.Set(rapid.SampledFrom(bases).Draw(rt, "start"))
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"take", "take", "take", "wait", "wait", "settle", "step back", "reset"}).Draw(rt, "act") {
			case "take":
				w.take()
			case "wait":
				w.advance()
			case "settle":
				w.settle()
			case "step back":
				if seldom(rt, "really") {
					w.stepBack()
				}
			case "reset":
				if resets && seldom(rt, "really") {
					w.reset()
				}
			}
		}
	})
}

// inWorlds tries a property some times as often as rapid does of itself: a world
// that changes a limit just when it matters is one of some hundreds.
func inWorlds(t *testing.T, property func(*rapid.T)) {
	rounds := 5
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		rapid.Check(t, property)
		if t.Failed() {
			return
		}
	}
}

// keepsALog fills a sliding log and changes its limit, smaller and larger, over
// a shorter and a longer window: what a store packs by the limit's size it must
// then pack anew.
func keepsALog(t *testing.T, open Open) {
	numbers := []comporta.Limit{
		{Limit: 50, Window: time.Hour},
		{Limit: 1, Window: time.Hour},
		{Limit: comporta.MaxUnits, Window: comporta.MaxWindow},
		{Limit: 3, Window: time.Second},
		{Limit: 50_000, Window: 24 * time.Hour},
	}
	rules := make([]*comporta.Rule, len(numbers))
	for i, limit := range numbers {
		limit.Algorithm = comporta.SlidingLog
		rules[i] = compile(t, limit)
	}
	clock := &Clock{}
	clock.Set(bases[1])
	store, model := open(t, clock.Now), &Model{Now: clock.Now}
	for i, from := range rules {
		for j, to := range rules {
			take := comporta.Take{Key: comporta.Key{Limit: "log", Identity: fmt.Sprintf("%d to %d", i, j)}, Cost: 1}
			ask := func(rule *comporta.Rule, cost int64) {
				take.Rule, take.Cost = rule, cost
				clock.Advance(time.Microsecond)
				if got, want := takeOne(t, store, take), takeOne(t, model, take); got != want {
					t.Errorf("%d of %s after %s:\n got %+v\nwant %+v", cost, rule.Limit(), from.Limit(), got, want)
				}
			}
			for n := range int64(9) {
				ask(from, n)
			}
			ask(to, 1)
			for range 5 {
				clock.Advance(300 * time.Millisecond)
				ask(to, 1)
			}
			ask(from, 2)
		}
	}
}

// refuses asks what is an error, and then whether anything was spent.
func refuses(t *testing.T, open Open) {
	clock := &Clock{}
	clock.Set(bases[1])
	store := open(t, clock.Now)
	rule := compile(t, comporta.Limit{Limit: 5, Window: time.Minute})
	a, b := comporta.Key{Limit: "a", Identity: "who"}, comporta.Key{Limit: "b", Identity: "who"}
	ctx, out := t.Context(), make([]comporta.Taken, 3)

	same := []comporta.Take{{Key: a, Rule: rule, Cost: 1}, {Key: b, Rule: rule, Cost: 1}, {Key: a, Rule: rule, Cost: 1}}
	if err := store.Take(ctx, same, out); !errors.Is(err, comporta.ErrSameKey) {
		t.Errorf("the same key twice in one step: got %v, want %v", err, comporta.ErrSameKey)
	}
	one, _ := store.(comporta.Taker)
	for _, cost := range []int64{-1, comporta.MaxCost + 1} {
		take := comporta.Take{Key: b, Rule: rule, Cost: cost}
		if err := store.Take(ctx, []comporta.Take{{Key: a, Rule: rule, Cost: 1}, take}, out); err == nil {
			t.Errorf("a cost of %d is no error", cost)
		}
		if one != nil {
			if _, err := one.TakeOne(ctx, take.Key, take.Rule, take.Cost); err == nil {
				t.Errorf("TakeOne: a cost of %d is no error", cost)
			}
		}
		settlement := comporta.Settlement{Key: a, Rule: rule, Taken: comporta.Receipt{At: clock.Instant(), Cost: 1}, Actual: cost}
		if err := store.Settle(ctx, []comporta.Settlement{settlement}, out); err == nil {
			t.Errorf("an actual cost of %d is no error", cost)
		}
	}
	if err := store.Settle(ctx, []comporta.Settlement{{Key: a, Rule: rule, Actual: 3}}, out); err == nil {
		t.Error("settling what is no take is no error")
	}
	if err := store.Take(ctx, nil, nil); err != nil {
		t.Errorf("a step of no limits: %v", err)
	}
	if err := store.Take(ctx, []comporta.Take{{Key: a, Rule: rule}, {Key: b, Rule: rule}}, out); err != nil {
		t.Fatal(err)
	}
	for _, d := range out[:2] {
		if d.Remaining != 5 {
			t.Errorf("an error has spent: %d of 5 remain", d.Remaining)
		}
	}
}

// keepsItsOwnStrings takes under a key in a buffer that is written over.
func keepsItsOwnStrings(t *testing.T, open Open) {
	clock := &Clock{}
	clock.Set(bases[1])
	store := open(t, clock.Now)
	rule := compile(t, comporta.Limit{Limit: 5, Window: time.Minute})
	buffer := []byte("aaaa")
	for _, letter := range []byte("abcabc") {
		for i := range buffer {
			buffer[i] = letter
		}
		takeOne(t, store, comporta.Take{Key: comporta.Key{Limit: "own", Identity: unsafe.String(&buffer[0], len(buffer))}, Rule: rule, Cost: 1})
	}
	for _, letter := range []string{"aaaa", "bbbb", "cccc"} {
		if d := takeOne(t, store, comporta.Take{Key: comporta.Key{Limit: "own", Identity: letter}, Rule: rule}); d.Remaining != 3 {
			t.Errorf("%s: after two takes %d of 5 remain", letter, d.Remaining)
		}
	}
}

func takeOne(t fataler, store comporta.Store, take comporta.Take) comporta.Taken {
	t.Helper()
	var out [1]comporta.Taken
	if err := store.Take(context.Background(), []comporta.Take{take}, out[:]); err != nil {
		t.Fatalf("%v", err)
	}
	return out[0]
}

// goroutines ask at once, so often each.
const goroutines, questions = 64, 40

// admitsNoMoreToMany lets many ask at once, first while the clock stands, where
// exactly a full budget passes, then while it runs, where the bound holds.
func admitsNoMoreToMany(t *testing.T, open Open) {
	for _, algorithm := range comporta.Algorithms() {
		for _, full := range []int64{1, 50, 1000} {
			limit := comporta.Limit{Algorithm: algorithm, Limit: full, Window: time.Second}
			t.Run(fmt.Sprintf("%s %s", algorithm, limit), func(t *testing.T) {
				clock := &Clock{}
				clock.Set(bases[1].Add(time.Microsecond)) // a second begins
				rule := compile(t, limit)
				store := open(t, clock.Now)
				if got := manyTake(t, store, rule, "stands", func() {}); got != full {
					t.Errorf("while the clock stands %d pass, want %d", got, full)
				}
				start := clock.Instant()
				got := manyTake(t, store, rule, "runs", func() { clock.Advance(500 * time.Microsecond) })
				over := clock.Instant().Sub(start) + time.Microsecond
				if bound := rule.Bound(over); got < full || got > bound {
					t.Errorf("in %v %d pass, want at least %d and at most %d", over, got, full, bound)
				}
			})
		}
	}
}

// manyTake is how many units many takers get together: of one limit, and of it
// beside one that never denies.
func manyTake(t *testing.T, store comporta.Store, rule *comporta.Rule, identity string, between func()) int64 {
	t.Helper()
	wide := compile(t, comporta.Limit{Limit: comporta.MaxUnits, Window: time.Hour, Algorithm: comporta.FixedWindow})
	var passed, beside atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			takes := []comporta.Take{
				{Key: comporta.Key{Limit: "narrow", Identity: identity}, Rule: rule, Cost: 1},
				{Key: comporta.Key{Limit: "wide", Identity: identity}, Rule: wide, Cost: 1},
			}[:1+g%2]
			out := make([]comporta.Taken, len(takes))
			for range questions {
				if err := store.Take(context.Background(), takes, out); err != nil {
					t.Error(err)
					return
				}
				if out[0].Allowed {
					passed.Add(1)
					beside.Add(int64(len(takes) - 1))
				}
				between()
			}
		})
	}
	wg.Wait()
	d := takeOne(t, store, comporta.Take{Key: comporta.Key{Limit: "wide", Identity: identity}, Rule: wide})
	if spent := comporta.MaxUnits - d.Remaining; spent != beside.Load() {
		t.Errorf("beside a limit that denied, %d units were spent for %d requests", spent, beside.Load())
	}
	return passed.Load()
}
