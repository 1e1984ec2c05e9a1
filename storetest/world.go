package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/comporta/comporta"
	"pgregory.net/rapid"
)

// A Clock is a clock that a test sets. The zero Clock stands at the Unix epoch.
// It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now comporta.Instant
}

// Now is the clock's time.
func (c *Clock) Now() time.Time { return c.Instant().Time() }

// Instant is the clock's time in microseconds.
func (c *Clock) Instant() comporta.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set sets the clock.
func (c *Clock) Set(now comporta.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// Advance moves the clock on, or back.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A world is a policy, some clients, and two stores that are asked the same.
type world struct {
	t     *rapid.T
	clock *Clock
	store comporta.Store
	one   comporta.Taker // asks single takes, where set
	apart bool           // no step asks about two clients
	model *Model

	names      []string
	versions   map[string][]*comporta.Rule // a limit's numbers, as they may change
	identities []string

	current map[comporta.Key]*comporta.Rule // the numbers that a key was last asked under
	taken   []comporta.Settlement           // may still be settled
	last    comporta.Taken
}

// bases are where a world's clock starts: the epoch, a day before Europe's clocks
// go back, a leap day, the last microsecond of a year.
var bases = []comporta.Instant{
	0,
	comporta.InstantOf(time.Date(2026, 10, 24, 21, 59, 59, 999_999_000, time.UTC)),
	comporta.InstantOf(time.Date(2028, 2, 29, 12, 0, 0, 0, time.UTC)),
	comporta.InstantOf(time.Date(2026, 12, 31, 23, 59, 59, 999_999_000, time.UTC)),
}

// newWorld draws a world. The run keeps its keys apart from those of others.
func newWorld(t *rapid.T, run int64) *world {
	w := &world{
		t: t, clock: &Clock{}, model: &Model{},
		versions: make(map[string][]*comporta.Rule),
		current:  make(map[comporta.Key]*comporta.Rule),
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "limits") {
		name := string(rune('a' + i))
		w.names = append(w.names, name)
		limit := Limits().Draw(t, name)
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			w.versions[name] = append(w.versions[name], compile(t, limit))
			limit = Changed(limit).Draw(t, name)
		}
		w.versions[name] = append(w.versions[name], compile(t, limit))
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "identities") {
		w.identities = append(w.identities, fmt.Sprintf("%d/client %d", run, i))
	}
	return w
}

func compile(t fataler, limit comporta.Limit) *comporta.Rule {
	t.Helper()
	rule, err := limit.Compile()
	if err != nil {
		t.Fatalf("%+v: %v", limit, err)
	}
	return rule
}

// A fataler is a test of either kind.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// rule is the version of a limit that is in force: a later one now and then.
func (w *world) rule(name string) *comporta.Rule {
	versions := w.versions[name]
	if len(versions) > 1 && seldom(w.t, "change "+name) {
		w.versions[name] = versions[1:]
	}
	return w.versions[name][0]
}

// advance moves the clock on to where something may happen.
func (w *world) advance() {
	window := w.versions[w.names[0]][0].FillTime()
	d := rapid.SampledFrom([]time.Duration{
		time.Microsecond, window / 7, window, window - time.Microsecond, 3 * time.Second, window * 2,
		w.last.ResetAfter, w.last.ResetAfter - time.Microsecond,
		w.last.FullAfter, w.last.FullAfter - time.Microsecond,
		w.last.AskAgain % comporta.Never, w.last.AskAgain%comporta.Never - time.Microsecond,
	}).Draw(w.t, "wait")
	d = min(max(d, 0), comporta.MaxFill)
	if now := w.clock.Instant().Add(d); now.Time().Year() < 2200 {
		w.clock.Set(now)
	}
}

// stepBack moves the clock back. A store may drop a key from the moment when it
// is full, which no later answer tells unless the clock steps back past it: so
// all keys are asked first, that both forget what is full.
func (w *world) stepBack() {
	for _, key := range w.keys() {
		w.ask([]comporta.Take{{Key: key, Rule: w.current[key]}})
	}
	d := rapid.SampledFrom([]time.Duration{
		time.Microsecond, time.Second, comporta.MaxStep, comporta.MaxStep + time.Microsecond, time.Hour,
	}).Draw(w.t, "step back")
	w.clock.Set(max(0, w.clock.Instant().Add(-d)))
}

func (w *world) keys() []comporta.Key {
	var keys []comporta.Key
	for _, name := range w.names {
		for _, identity := range w.identities {
			if key := (comporta.Key{Limit: name, Identity: identity}); w.current[key] != nil {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// take asks some of the limits for one client, seldom for two.
func (w *world) take() {
	identity := rapid.SampledFrom(w.identities).Draw(w.t, "identity")
	var takes []comporta.Take
	for _, name := range w.names {
		if len(takes) > 0 && rapid.Bool().Draw(w.t, "leave out "+name) {
			continue
		}
		rule := w.rule(name)
		takes = append(takes, comporta.Take{
			Key: comporta.Key{Limit: name, Identity: identity}, Rule: rule,
			Cost: cost(w.t, rule.Full()), Shadow: seldom(w.t, "shadow"),
		})
		if w.one != nil {
			takes[0].Shadow = false
			break
		}
	}
	if first := takes[0]; w.one == nil && !w.apart && len(w.identities) > 1 && seldom(w.t, "of two clients") {
		// The same limit for the other client too: another key of one step.
		first.Key.Identity = w.identities[0]
		if identity == first.Key.Identity {
			first.Key.Identity = w.identities[1]
		}
		takes = append(takes, first)
	}
	w.ask(takes)
}

// cost draws a cost, mostly small, of a budget of that size.
func cost(t *rapid.T, full int64) int64 {
	full = min(full, comporta.MaxUnits)
	c := rapid.SampledFrom([]int64{1, 0, 2, 3, full, full + 1, full/2 + 1, full - 1, comporta.MaxCost}).Draw(t, "cost")
	return max(c, 0)
}

// ask takes from both stores and compares every field.
func (w *world) ask(takes []comporta.Take) {
	w.t.Helper()
	ctx := context.Background()
	want, got := make([]comporta.Taken, len(takes)), make([]comporta.Taken, len(takes))
	if err := w.model.Take(ctx, takes, want); err != nil {
		w.t.Fatalf("the model: %v", err)
	}
	var err error
	if w.one != nil && !takes[0].Shadow {
		got[0] = want[0] // it tells the decision alone
		got[0].Decision, err = w.one.TakeOne(ctx, takes[0].Key, takes[0].Rule, takes[0].Cost)
	} else {
		err = w.store.Take(ctx, takes, got)
	}
	w.compare("take", describe(takes), got, want, err)
	for i, take := range takes {
		w.current[take.Key] = take.Rule
		if want[i].Receipt.Cost > 0 {
			w.taken = append(w.taken, comporta.Settlement{Key: take.Key, Rule: take.Rule, Taken: want[i].Receipt})
		}
	}
	w.last = want[0]
}

// settle settles earlier takes in one call, under the numbers that the limits have now.
func (w *world) settle() {
	var all []comporta.Settlement
	for len(w.taken) > 0 && (len(all) == 0 || seldom(w.t, "another")) {
		i := rapid.IntRange(0, len(w.taken)-1).Draw(w.t, "take")
		s := w.taken[i]
		w.taken = slices.Delete(w.taken, i, i+1)
		s.Rule = w.rule(s.Key.Limit)
		c := s.Taken.Cost
		s.Actual = min(max(0, rapid.SampledFrom([]int64{0, c, c - 1, c + 1, 2 * c, c / 2, c + s.Rule.Full()%comporta.MaxCost, comporta.MaxCost}).Draw(w.t, "actual")), comporta.MaxCost)
		w.current[s.Key] = s.Rule
		all = append(all, s)
	}
	if len(all) == 0 {
		return
	}
	what := ""
	for _, s := range all {
		what += fmt.Sprintf("%s %+v of %s to %d; ", s.Key.Limit, s.Taken, s.Rule.Limit(), s.Actual)
	}
	ctx := context.Background()
	want, got := make([]comporta.Taken, len(all)), make([]comporta.Taken, len(all))
	if err := w.model.Settle(ctx, all, want); err != nil {
		w.t.Fatalf("the model: %v", err)
	}
	err := w.store.Settle(ctx, all, got)
	w.compare("settle", what, got, want, err)
	w.last = want[0]
}

func (w *world) compare(act, what string, got, want []comporta.Taken, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s at %d: %s: %v", act, w.clock.Instant(), what, err)
	}
	for i := range want {
		if got[i] != want[i] {
			w.t.Fatalf("%s at %d: %s: decision %d differs:\n got %+v\nwant %+v", act, w.clock.Instant(), what, i, got[i], want[i])
		}
	}
}

// describe says what was asked.
func describe(takes []comporta.Take) string {
	text := ""
	for _, t := range takes {
		l := t.Rule.Limit()
		text += fmt.Sprintf("%d of %s/%s (%s %s, max_wait %v, charge %v, shadow %v); ", t.Cost, t.Key.Limit, t.Key.Identity, l.Algorithm, l, l.MaxWait, l.Charge, t.Shadow)
	}
	return text
}
