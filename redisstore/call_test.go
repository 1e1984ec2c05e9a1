package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/storetest"
)

// TestCallIsTheModel: a call does to each of its requests what the model does
// when it is asked one after the other, whatever shares the call: other
// algorithms and costs, several limits, settlements, shadows, changed numbers,
// numbers at the ends of the ranges, a clock that steps back.
func TestCallIsTheModel(t *testing.T) {
	client := direct{redistest.Start(t)}
	clock := &storetest.Clock{}
	s, err := New(client, Options{Now: clock.Now, Prefix: client.Prefix, Heartbeat: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		clock.Set(comporta.InstantOf(time.Date(2026, 10, 24, 21, 59, 59, 999_999_000, time.UTC)))
		b := &bench{t: t, store: s, client: client, clock: clock, model: &storetest.Model{Now: clock.Now}}
		b.identities = []string{fmt.Sprint(run, "/x"), fmt.Sprint(run, "/y")}
		for _, name := range []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "limits")] {
			b.limits = append(b.limits, named{name: name})
			b.change(&b.limits[len(b.limits)-1])
		}
		back := time.Duration(0)
		for range rapid.IntRange(1, 8).Draw(t, "calls") {
			clock.Advance(-back)
			back = 0
			switch rapid.IntRange(0, 5).Draw(t, "before") {
			case 1:
				b.change(&b.limits[rapid.IntRange(0, len(b.limits)-1).Draw(t, "changed")])
			case 2:
				last := b.last.Decision
				clock.Advance(rapid.SampledFrom([]time.Duration{
					time.Microsecond, last.ResetAfter, last.ResetAfter - time.Microsecond, last.RetryAfter % comporta.Never,
					last.FullAfter - time.Microsecond, 30 * 24 * time.Hour, comporta.MaxWindow,
				}).Draw(t, "wait"))
			case 3:
				back = rapid.SampledFrom([]time.Duration{
					time.Microsecond, time.Second, comporta.MaxStep, comporta.MaxStep + time.Microsecond, time.Hour,
				}).Draw(t, "then back by")
			}
			var waiting []*request
			for range rapid.IntRange(1, 30).Draw(t, "requests") {
				waiting = append(waiting, b.request())
			}
			if back > 0 { // no later answer tells whether a key that was full is forgotten, unless the clock steps back past it
				waiting = append(waiting, b.peeks()...)
			}
			for len(waiting) > 0 {
				waiting = b.call(waiting)
			}
		}
	})
}

// A bench is a store, asked by calls that it is given ready, beside the model.
type bench struct {
	t      *rapid.T
	store  *Store
	client direct
	clock  *storetest.Clock
	model  *storetest.Model

	limits     []named
	identities []string
	taken      []comporta.Settlement // may still be settled
	last       comporta.Taken
}

type named struct {
	name string
	rule *comporta.Rule
}

// change draws a limit's numbers, the first or others.
func (b *bench) change(l *named) {
	limits := rapid.OneOf(storetest.Limits(), rapid.Custom(extreme).Filter(compiles))
	if l.rule != nil {
		limits = rapid.OneOf(storetest.Changed(l.rule.Limit()), rapid.Custom(extreme).Filter(compiles))
	}
	l.rule, _ = limits.Draw(b.t, l.name).Compile()
}

func compiles(l comporta.Limit) bool {
	_, err := l.Compile()
	return err == nil
}

// extreme draws limits at the ends of the ranges, where digits are lost first.
func extreme(t *rapid.T) comporta.Limit {
	count := rapid.SampledFrom([]int64{1, 3, 999_983, 999_999_999_989, comporta.MaxUnits})
	l := comporta.Limit{
		Algorithm: rapid.SampledFrom(comporta.Algorithms()).Draw(t, "algorithm"),
		Limit:     count.Draw(t, "limit"),
		Window: rapid.SampledFrom([]time.Duration{
			comporta.MinWindow, 1_000_003 * time.Microsecond, comporta.MaxWindow - 1009*time.Microsecond, comporta.MaxWindow,
		}).Draw(t, "window"),
	}
	if l.Algorithm.Bucket() {
		l.Burst = count.Draw(t, "burst")
	}
	if rapid.Bool().Draw(t, "attempts") {
		l.Charge = comporta.Attempts
	} else if l.Algorithm == comporta.TokenBucket && rapid.Bool().Draw(t, "waits") {
		l.MaxWait = comporta.MaxWindow
	}
	return l
}

// request draws what may share a call with others.
func (b *bench) request() *request {
	kind := rapid.SampledFrom([]string{"take", "take", "take", "takes", "takes", "denied", "settle"}).Draw(b.t, "kind")
	if kind == "settle" && len(b.taken) > 0 {
		r := newRequest(1)
		i := rapid.IntRange(0, len(b.taken)-1).Draw(b.t, "which")
		st := b.taken[i]
		b.taken = append(b.taken[:i:i], b.taken[i+1:]...)
		for _, l := range b.limits {
			if l.name == st.Key.Limit {
				st.Rule = l.rule
			}
		}
		c := st.Taken.Cost
		actual := rapid.SampledFrom([]int64{0, c, c - 1, c + 1, 2 * c, c + min(st.Rule.Full(), comporta.MaxUnits), comporta.MaxCost}).Draw(b.t, "actual")
		st.Actual = min(actual, comporta.MaxCost)
		r.settlement = &st
		return r
	}
	identity := rapid.SampledFrom(b.identities).Draw(b.t, "identity")
	limits := b.limits
	if kind == "take" {
		i := rapid.IntRange(0, len(limits)-1).Draw(b.t, "limit")
		limits = limits[i : i+1]
	}
	r := newRequest(len(limits))
	r.denied = kind == "denied"
	for i, l := range limits {
		full := min(l.rule.Full(), comporta.MaxUnits)
		cost := rapid.SampledFrom([]int64{1, 1, 1, 0, 2, full, full/2 + 1, full - 1, full + 1, comporta.MaxCost}).Draw(b.t, "cost")
		r.takes[i] = comporta.Take{
			Key: comporta.Key{Limit: l.name, Identity: identity}, Rule: l.rule, Cost: max(cost, 0),
			Shadow: rapid.IntRange(0, 5).Draw(b.t, "shadow") == 5,
		}
	}
	return r
}

// peeks look at all keys.
func (b *bench) peeks() (all []*request) {
	for _, l := range b.limits {
		for _, identity := range b.identities {
			r := newRequest(1)
			r.takes[0] = comporta.Take{Key: comporta.Key{Limit: l.name, Identity: identity}, Rule: l.rule}
			all = append(all, r)
		}
	}
	return all
}

// call makes one call of as many requests as go together, and returns the others.
func (b *bench) call(waiting []*request) (later []*request) {
	b.t.Helper()
	c := newCall(b.store)
	c.reset(b.clock.Instant())
	for _, r := range waiting {
		if !c.add(r) {
			later = append(later, r)
		}
	}
	if c.script() == tokenStep {
		b.compareScripts(c)
	}
	if err := c.read(b.run(c.script(), c, c.keys)); err != nil {
		b.t.Fatal(err)
	}
	for r := range c.requests {
		switch {
		case r.err == nil:
			b.compare(r)
		case errors.Is(r.err, errCareful) && !r.careful:
			r.err, r.careful, r.next = nil, true, nil
			later = append(later, r)
		default:
			b.t.Fatal(r.err)
		}
	}
	return later
}

func (b *bench) run(script script, c *call, keys []string) string {
	b.t.Helper()
	reply, err := script.run(b.t.Context(), b.client, keys, c.argument(int64(b.clock.Instant())))
	if err != nil {
		b.t.Fatal(err)
	}
	return reply.(string)
}

// compareScripts runs both scripts on copies of a call's keys: what the one for
// token buckets does not leave to the other, it does alike.
func (b *bench) compareScripts(c *call) {
	b.t.Helper()
	copied := func(suffix string) (keys []string) {
		for _, key := range c.keys {
			keys = append(keys, key+suffix)
			b.do("DEL", key+suffix)
			b.do("COPY", key, key+suffix)
		}
		return keys
	}
	one, two := copied("~1"), copied("~2")
	short, long := b.run(tokenStep, c, one), b.run(step, c, two)
	if len(short) != len(long) {
		return // something was left
	}
	if short != long {
		b.t.Fatalf("the scripts reply\n%x\n%x", short, long)
	}
	for i := range one {
		if a, b2 := b.do("GET", one[i]), b.do("GET", two[i]); a != b2 {
			b.t.Fatalf("the scripts leave\n%x\n%x", a, b2)
		}
	}
}

func (b *bench) do(args ...string) any {
	b.t.Helper()
	reply, err := b.client.Server.Do(args...)
	if err != nil {
		b.t.Fatal(args, err)
	}
	return reply
}

// compare asks the model the same.
func (b *bench) compare(r *request) {
	b.t.Helper()
	var what string
	var err error
	want := make([]comporta.Taken, len(r.out)+1)
	if st := r.settlement; st != nil {
		what = fmt.Sprintf("settle %s %+v to %d of %+v", st.Key, st.Taken, st.Actual, st.Rule.Limit())
		err = b.model.Settle(b.t.Context(), []comporta.Settlement{*st}, want)
	} else {
		takes := append([]comporta.Take(nil), r.takes...)
		if r.denied {
			takes = append(takes, comporta.Take{Rule: deniesAll, Cost: 1})
		}
		for _, t := range takes {
			what += fmt.Sprintf("%d of %s, shadow %v, %+v; ", t.Cost, t.Key, t.Shadow, t.Rule.Limit())
		}
		err = b.model.Take(b.t.Context(), takes, want)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff(want[:len(r.out)], r.out); diff != "" {
		b.t.Fatalf("at %d: %s:\n%s", b.clock.Instant(), what, diff)
	}
	b.last = r.out[0]
	for i := range r.takes {
		if r.settlement == nil && r.out[i].Receipt.Cost > 0 {
			b.taken = append(b.taken, comporta.Settlement{Key: r.takes[i].Key, Taken: r.out[i].Receipt})
		}
	}
}
