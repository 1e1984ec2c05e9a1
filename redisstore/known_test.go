package redisstore

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/comporta/comporta"
)

const (
	us = int64(time.Microsecond)
	ms = int64(time.Millisecond)
)

func compile(t testing.TB, text string, change ...func(*comporta.Limit)) *comporta.Rule {
	t.Helper()
	l, err := comporta.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(&l)
	}
	rule, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func denial(retry, reset, full time.Duration) *comporta.Decision {
	return &comporta.Decision{Limit: 10, RetryAfter: retry, ResetAfter: reset, FullAfter: full}
}

var alice = comporta.Key{Limit: "api", Identity: "alice"}

func TestDenialIsRememberedUntilItEnds(t *testing.T) {
	rule := compile(t, "10/s")
	k := newKnown(100)
	sent, replied := 1000*us, 1500*us
	k.note(&alice, rule, 2, denial(200*time.Millisecond, 100*time.Millisecond, time.Second), sent, replied)

	got, ok := k.denied(&alice, rule, 2, replied+10*ms+999)
	want := *denial(190*time.Millisecond, 90*time.Millisecond, 990*time.Millisecond)
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Fatal("durations run from the reply, in whole microseconds rounded up:", diff)
	}
	if _, ok := k.denied(&alice, rule, 1, replied); ok {
		t.Error("a smaller cost may be allowed")
	}
	if _, ok := k.denied(&comporta.Key{Limit: "api", Identity: "bob"}, rule, 2, replied); ok {
		t.Error("bob is not alice")
	}
	end := sent + 100*ms // it was sent at the earliest, and tells its remaining truly until the reset
	if _, ok := k.denied(&alice, rule, 2, end-1); !ok {
		t.Error("forgotten before its end")
	}
	if _, ok := k.denied(&alice, rule, 2, end); ok {
		t.Error("remembered past its reset")
	}
	d, age, ok := k.last(&alice, replied+int64(time.Hour))
	if d.RetryAfter != 200*time.Millisecond || age != time.Hour || !ok {
		t.Error("the last answer is kept as it was:", d, age, ok)
	}
}

func TestDenialIsRememberedForASecondAtMost(t *testing.T) {
	rule := compile(t, "10/24h")
	for name, d := range map[string]*comporta.Decision{
		"long":  denial(time.Hour, time.Hour, time.Hour),
		"never": denial(comporta.Never, 0, 0),
	} {
		k := newKnown(100)
		k.note(&alice, rule, 20, d, ms, 2*ms)
		got, ok := k.denied(&alice, rule, 20, 1001*ms-1)
		if !ok || d.RetryAfter == comporta.Never && got.RetryAfter != comporta.Never {
			t.Error(name, ok, got)
		}
		if _, ok := k.denied(&alice, rule, 20, 1001*ms); ok {
			t.Error(name, "remembered for longer than a second")
		}
	}
}

func TestWhatEndsADenial(t *testing.T) {
	d := denial(time.Second, time.Second, time.Second)
	allowed := &comporta.Decision{Allowed: true, Limit: 10, Remaining: 3}
	other := compile(t, "11/s")
	for name, c := range map[string]struct {
		want bool
		do   func(k *known, rule *comporta.Rule)
	}{
		"nothing":           {true, func(*known, *comporta.Rule) {}},
		"an allowed answer": {false, func(k *known, r *comporta.Rule) { k.note(&alice, r, 1, allowed, 20*ms, 21*ms) }},
		"a settle":          {false, func(k *known, r *comporta.Rule) { k.drop(&alice, 20*ms) }},
		"a denial that was on its way at a settle": {false, func(k *known, r *comporta.Rule) {
			k.drop(&alice, 20*ms)
			k.note(&alice, r, 1, d, 20*ms-1, 21*ms)
		}},
		"a denial that was on its way at an allowed answer": {false, func(k *known, r *comporta.Rule) {
			k.note(&alice, r, 1, allowed, 10*ms, 20*ms)
			k.note(&alice, r, 1, d, 20*ms-1, 21*ms)
		}},
		"a denial after a settle": {true, func(k *known, r *comporta.Rule) {
			k.drop(&alice, 20*ms)
			k.note(&alice, r, 1, d, 20*ms, 21*ms)
		}},
		"an answer under another rule": {false, func(k *known, r *comporta.Rule) { k.note(&alice, other, 1, d, 20*ms, 21*ms) }},
	} {
		t.Run(name, func(t *testing.T) {
			rule := compile(t, "10/s")
			k := newKnown(100)
			k.note(&alice, rule, 1, d, 10*ms, 11*ms)
			c.do(k, rule)
			if _, ok := k.denied(&alice, rule, 1, 30*ms); ok != c.want {
				t.Fatal(ok)
			}
		})
	}
}

func TestDenialHoldsForItsRuleOnly(t *testing.T) {
	attempts := func(l *comporta.Limit) { l.Charge = comporta.Attempts }
	patient := func(l *comporta.Limit) { l.MaxWait = time.Second }
	for name, c := range map[string]struct {
		noted, asked *comporta.Rule
		want         bool
	}{
		"the same numbers": {compile(t, "10/s"), compile(t, "10/s"), true},
		"other numbers":    {compile(t, "10/s"), compile(t, "10/min"), false},
		"another wait":     {compile(t, "10/s"), compile(t, "10/s", patient), false},
		"attempts":         {compile(t, "10/s", attempts), compile(t, "10/s", attempts), false},
		"attempts by now":  {compile(t, "10/s"), compile(t, "10/s", attempts), false},
	} {
		k := newKnown(100)
		k.note(&alice, c.noted, 1, denial(time.Second, time.Second, time.Second), ms, 2*ms)
		if _, ok := k.denied(&alice, c.asked, 1, 3*ms); ok != c.want {
			t.Errorf("%s: %v", name, ok)
		}
		if _, _, ok := k.last(&alice, 3*ms); !ok {
			t.Errorf("%s: the last answer is known in any case", name)
		}
	}
}

// What is remembered is never told sooner than the model would tell it, and of
// the cost that was asked it is told exactly.
func TestRememberedIsWhatTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := comporta.Limit{
			Algorithm: rapid.SampledFrom(comporta.Algorithms()).Draw(t, "algorithm"),
			Limit:     rapid.Int64Range(1, 20).Draw(t, "limit"),
			Window:    time.Duration(rapid.Int64Range(1000, 3_000_000).Draw(t, "window")) * time.Microsecond,
		}
		rule, err := l.Compile()
		if err != nil {
			t.Fatal(err)
		}
		var cell comporta.Cell
		var log comporta.Entries
		var told comporta.Taken
		now := comporta.Instant(1_000_000)
		take := func(cost int64) {
			cell.Log = &log
			cell.Edit = comporta.Edit{}
			rule.Advance(&cell, now, cost, &told)
			if rule.Algorithm() == comporta.SlidingLog {
				log.Apply(cell.Edit)
			}
		}
		cost := int64(0)
		for range 40 {
			cost = rapid.Int64Range(1, l.Limit+2).Draw(t, "cost")
			if take(cost); !told.Allowed {
				break
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, 100).Draw(t, "step")) * time.Microsecond)
		}
		if told.Allowed {
			t.Skip("nothing was denied")
		}
		k := newKnown(1)
		k.note(&alice, rule, cost, &told.Decision, int64(now)*us, int64(now)*us)
		larger := cost + rapid.Int64Range(0, 5).Draw(t, "larger")
		now = now.Add(time.Duration(rapid.Int64Range(0, 2_000_000).Draw(t, "later")) * time.Microsecond)
		got, ok := k.denied(&alice, rule, larger, int64(now)*us)
		if !ok {
			t.Skip("it holds no more")
		}
		take(larger)
		want := told.Decision
		if got.RetryAfter < want.RetryAfter {
			t.Fatalf("retry after %v, and the model says %v", got.RetryAfter, want.RetryAfter)
		}
		if larger != cost || rule.Ticks() > 0 && got.RetryAfter-want.RetryAfter <= time.Microsecond {
			got.RetryAfter = want.RetryAfter
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAnswerUnderSeveralLimits(t *testing.T) {
	fast, slow := compile(t, "10/s"), compile(t, "100/h")
	attempts := compile(t, "100/h", func(l *comporta.Limit) { l.Charge = comporta.Attempts })
	hourly := comporta.Key{Limit: "hourly", Identity: "alice"}
	no := denial(500*time.Millisecond, 100*time.Millisecond, time.Second)
	yes := &comporta.Decision{Allowed: true, Limit: 100, Remaining: 3, ResetAfter: 20 * time.Millisecond, FullAfter: time.Minute, Delay: 5}
	fresh := func() *known {
		k := newKnown(100)
		k.note(&hourly, slow, 1, yes, ms, 2*ms)
		k.note(&alice, fast, 1, no, ms, 2*ms)
		return k
	}
	takes := func() []comporta.Take {
		return []comporta.Take{{Key: alice, Rule: fast, Cost: 1}, {Key: hourly, Rule: slow, Cost: 1}}
	}

	out := make([]comporta.Taken, 2)
	if !fresh().answer(takes(), out, 32*ms) {
		t.Fatal("it is known")
	}
	want := []comporta.Taken{
		{Decision: *denial(470*time.Millisecond, 70*time.Millisecond, 970*time.Millisecond), AskAgain: 470 * time.Millisecond},
		{Decision: comporta.Decision{Allowed: true, Limit: 100, Remaining: 3, FullAfter: time.Minute - 30*time.Millisecond}},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Fatal(diff)
	}

	for name, c := range map[string]struct {
		want bool
		now  int64
		do   func(k *known, takes []comporta.Take)
	}{
		"the denial is over":   {false, 101 * ms, func(*known, []comporta.Take) {}},
		"only a shadow denies": {false, 3 * ms, func(_ *known, t []comporta.Take) { t[0].Shadow = true }},
		"a shadow is known":    {true, 3 * ms, func(_ *known, t []comporta.Take) { t[1].Shadow = true }},
		"another is not known": {false, 3 * ms, func(_ *known, t []comporta.Take) { t[1].Key.Identity = "bob" }},
		"another may deny":     {false, 3 * ms, func(_ *known, t []comporta.Take) { t[1].Cost = 4 }},
		"another has changed":  {false, 3 * ms, func(_ *known, t []comporta.Take) { t[1].Rule = fast }},
		"another denies too":   {true, 3 * ms, func(k *known, t []comporta.Take) { k.note(&hourly, slow, 1, no, 2*ms, 2*ms) }},
		"another is of old": {false, 1003 * ms, func(k *known, t []comporta.Take) {
			k.note(&alice, fast, 1, no, 1002*ms, 1002*ms)
		}},
		"another charges attempts": {false, 3 * ms, func(k *known, t []comporta.Take) {
			k.note(&hourly, attempts, 1, yes, ms, 2*ms)
			t[1].Rule = attempts
		}},
	} {
		k, takes := fresh(), takes()
		c.do(k, takes)
		if got := k.answer(takes, out, c.now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The table is bounded, and what was used last stays.
func TestKnownIsBounded(t *testing.T) {
	rule := compile(t, "10/s")
	k := newKnown(1024)
	d := denial(time.Second, time.Second, time.Second)
	k.note(&alice, rule, 1, d, ms, ms)
	for i := range 20_000 {
		now := ms + int64(i)*20_000
		key := comporta.Key{Limit: "api", Identity: fmt.Sprint("other ", i)}
		k.note(&key, rule, 1, d, now, now)
		if _, ok := k.denied(&alice, rule, 1, now); !ok {
			t.Fatalf("alice was told at each step and is forgotten after %d others", i)
		}
	}
	held := 0
	for i := range k.shards {
		for j := range k.shards[i].sets {
			for _, tag := range k.shards[i].sets[j].tags {
				if tag != 0 {
					held++
				}
			}
		}
	}
	if held > 1024 || held < 1000 {
		t.Fatalf("%d keys are held, want some 1024", held)
	}
	for keys, want := range map[int]uint64{1: 1, 256: 1, 257: 2, 65_536: 256, math.MaxInt32: 1 << 23} {
		if got := newKnown(keys).sets; got != want {
			t.Errorf("%d keys: %d sets a shard, want %d", keys, got, want)
		}
	}
	if size := unsafe.Sizeof(knownSet{}); size%64 != 0 || unsafe.Sizeof(knownShard{})%64 != 0 {
		t.Errorf("a set of %d bytes, a shard of %d: not whole lines of memory", size, unsafe.Sizeof(knownShard{}))
	}
}

// For the race detector.
func TestKnownTogether(t *testing.T) {
	rule := compile(t, "10/s")
	k := newKnown(64)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 500 {
				key := comporta.Key{Limit: "api", Identity: fmt.Sprint(i % 7)}
				now := int64(g*500 + i + 1)
				d := &comporta.Decision{Allowed: i%3 == 0, Limit: 10, RetryAfter: time.Second, ResetAfter: time.Second}
				k.note(&key, rule, 1, d, now, now)
				k.denied(&key, rule, 1, now)
				k.last(&key, now)
				k.drop(&key, now)
			}
		})
	}
	all.Wait()
}

func BenchmarkKnown(b *testing.B) {
	rule := compile(b, "10/s")
	for _, n := range []int{1, 10_000} {
		keys := make([]comporta.Key, n)
		k := newKnown(65_536)
		d := denial(time.Second, time.Second, time.Second)
		for i := range keys {
			keys[i] = comporta.Key{Limit: "per-client", Identity: fmt.Sprintf("203.0.113.%d", i)}
			k.note(&keys[i], rule, 1, d, ms, ms)
		}
		each := func(name string, do func(*comporta.Key)) {
			b.Run(fmt.Sprintf("keys=%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for i := 0; pb.Next(); i++ {
						do(&keys[i*7919%n])
					}
				})
			})
		}
		each("denied", func(key *comporta.Key) { k.denied(key, rule, 1, 2*ms) })
		each("note", func(key *comporta.Key) { k.note(key, rule, 1, d, 2*ms, 2*ms) })
	}
}
