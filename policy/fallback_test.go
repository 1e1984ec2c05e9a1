package policy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
	"github.com/comporta/comporta/storetest"
)

// shared is a store that instances share: it can be down, and it knows what it answered.
type shared struct {
	storetest.Faults
	instances int
	now       func() time.Time

	mu    sync.Mutex
	down  bool
	known map[comporta.Key]answer
}

type answer struct {
	comporta.Decision
	at time.Time
}

func (s *shared) Instances() int { return s.instances }

func (s *shared) Known(key comporta.Key) (comporta.Decision, time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.known[key]
	return a.Decision, s.now().Sub(a.at), ok
}

func (s *shared) know(key comporta.Key, d comporta.Decision, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.known[key] = answer{d, s.now()}
	}
}

func (s *shared) Take(ctx context.Context, takes []comporta.Take, out []comporta.Taken) error {
	err := s.Faults.Take(ctx, takes, out)
	for i := range takes {
		s.know(takes[i].Key, out[i].Decision, err)
	}
	return err
}

func (s *shared) TakeOne(ctx context.Context, key comporta.Key, rule *comporta.Rule, cost int64) (comporta.Decision, error) {
	d, err := s.Faults.TakeOne(ctx, key, rule, cost)
	s.know(key, d, err)
	return d, err
}

// be is whether the store is down from now on.
func (s *shared) be(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *shared) fault(int) storetest.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return storetest.Lost
	}
	return storetest.None
}

// A fleet is one of several instances: an engine over a shared store, with a
// local one beside it.
type fleet struct {
	house
	store *shared
	local *watched
}

// watched is a local store that tells when somebody has looked at a key.
type watched struct {
	comporta.Store
	looked func(key comporta.Key, rule *comporta.Rule)
}

func (w *watched) Take(ctx context.Context, takes []comporta.Take, out []comporta.Taken) error {
	err := w.Store.Take(ctx, takes, out)
	if w.looked != nil && takes[0].Cost == 0 {
		w.looked(takes[0].Key, takes[0].Rule)
	}
	return err
}

// A teller is a test, of rapid or not.
type teller interface {
	Helper()
	Fatal(args ...any)
}

// join makes one instance of so many, whose clocks are one.
func join(t teller, instances int, p policy.Policy) *fleet {
	t.Helper()
	f := &fleet{house: house{now: epoch}}
	clock := func() time.Time { return f.now }
	f.store = &shared{instances: instances, now: clock, known: map[comporta.Key]answer{}}
	f.store.Store, f.store.Script = memory(t, clock), f.store.fault
	f.local = &watched{Store: memory(t, clock)}
	var err error
	if f.Engine, err = policy.NewEngine(&p, f.store, policy.Options{Now: clock, Local: f.local}); err != nil {
		t.Fatal(err)
	}
	return f
}

func memory(t teller, now func() time.Time) *memstore.Store {
	t.Helper()
	s, err := memstore.New(memstore.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func onError(o policy.OnError) func(*policy.Limit) { return func(l *policy.Limit) { l.OnError = o } }

// fell is what a request came to that the store could not answer.
func fell(v *policy.Verdict) string {
	said := fmt.Sprint(v.Fallen)
	switch {
	case v.Allowed:
		said += " passes"
	case v.RetryAfter > 0:
		said += fmt.Sprint(" refuses for ", v.RetryAfter)
	default:
		said += " refuses"
	}
	for i, a := range v.Applied {
		said += fmt.Sprintf("; %s %v", a.Limit.Name, a.Fallen)
		if i == v.Named {
			said += " named"
		}
		if a.Shown {
			said += fmt.Sprintf(" %d of %d", a.Decision.Remaining, a.Decision.Limit)
		} else if !a.Decision.Allowed {
			said += " denies"
		}
	}
	return said
}

func TestWhichWayARequestFalls(t *testing.T) {
	const fixed = "4/min as fixed_window"
	is := func(o policy.OnError, name string, more ...func(*policy.Limit)) *policy.Limit {
		return limit(t, name, fixed, append(more, onError(o))...)
	}
	for _, c := range []struct {
		name   string
		policy policy.OnError
		limits []*policy.Limit
		want   []string // of request after request
	}{
		{"local unless said", policy.Default, []*policy.Limit{is(policy.Default, "a")},
			[]string{"local passes; a local named 1 of 2", "local passes; a local named 0 of 2", "local refuses for 1m0s; a local named 0 of 2"}},
		{"as the policy says", policy.Allow, []*policy.Limit{is(policy.Default, "a")}, []string{"allow passes; a allow", "allow passes; a allow", "allow passes; a allow"}},
		{"as the limit says", policy.Deny, []*policy.Limit{is(policy.Allow, "a")}, []string{"allow passes; a allow"}},
		{"deny", policy.Deny, []*policy.Limit{is(policy.Default, "a")}, []string{"deny refuses for 1s; a deny denies", "deny refuses for 1s; a deny denies"}},
		{"local beside allow", policy.Default, []*policy.Limit{is(policy.Allow, "a"), is(policy.Local, "b")},
			[]string{"local passes; a allow; b local named 1 of 2", "local passes; a allow; b local named 0 of 2", "local refuses for 1m0s; a allow; b local named 0 of 2"}},
		{"deny beside all", policy.Default, []*policy.Limit{is(policy.Allow, "a"), is(policy.Local, "b"), is(policy.Deny, "c")},
			[]string{"deny refuses for 1s; a deny; b deny; c deny denies"}},
		{"a shadow refuses nothing", policy.Deny, []*policy.Limit{is(policy.Default, "a", shadow)}, []string{"allow passes; a allow"}},
		{"a shadow counts", policy.Local, []*policy.Limit{limit(t, "a", "2/min", shadow), is(policy.Default, "b")},
			[]string{"local passes; a local; b local named 1 of 2", "local passes; a local denies; b local named 0 of 2"}},
		{"all or nothing", policy.Local, []*policy.Limit{limit(t, "a", "2/min as fixed_window"), is(policy.Default, "b")},
			[]string{"local passes; a local named 0 of 1; b local 1 of 2", "local refuses for 1m0s; a local named 0 of 1; b local 1 of 2"}},
		{"unlimited ones have no part", policy.Deny, []*policy.Limit{limit(t, "a", "unlimited")}, []string{"default passes; a default"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := limits(c.limits...)
			p.OnError = c.policy
			f := join(t, 2, p)
			f.store.be(true)
			var v policy.Verdict // used again and again
			for _, want := range c.want {
				f.Check(t.Context(), request("GET", "/", peer), &v)
				if got := fell(&v); got != want || (v.Failed == nil) != (v.Fallen == policy.Default) {
					t.Errorf("got  %s (%v)\nwant %s", got, v.Failed, want)
				}
			}
			f.store.be(false)
			if f.Check(t.Context(), request("GET", "/", peer), &v); v.Failed != nil || v.Fallen != policy.Default || v.Applied[0].Fallen != policy.Default || !v.Allowed {
				t.Errorf("the store answers again: %s", fell(&v))
			}
		})
	}
}

// With a limit that denies, the others' local budgets are left alone.
func TestADenyingLimitSpendsNothing(t *testing.T) {
	f := join(t, 1, limits(
		limit(t, "local", "2/min", onError(policy.Local)),
		limit(t, "post", "9/min", match(t, "POST /"), onError(policy.Deny))))
	f.store.be(true)
	if n := f.passes(5, "POST", "/", peer); n != 0 {
		t.Errorf("%d pass", n)
	}
	if n := f.passes(5, "GET", "/", peer); n != 2 {
		t.Errorf("%d pass, not 2", n)
	}
}

func TestTheWayOfAPolicy(t *testing.T) {
	local := memory(t, func() time.Time { return epoch })
	for _, c := range []struct {
		policy, limit policy.OnError
		local         comporta.Store
		want          policy.OnError
		fault         string
	}{
		{policy.Default, policy.Default, nil, policy.Allow, ""},
		{policy.Default, policy.Default, local, policy.Local, ""},
		{policy.Deny, policy.Local, local, policy.Deny, ""},
		{policy.Local, policy.Default, nil, 0, "on_error: local needs a store"},
		{policy.Default, policy.Local, nil, 0, `limit "a": on_error: local needs a store`},
		{policy.Default, 9, nil, 0, "unknown: OnError(9)"},
	} {
		p := limits(limit(t, "a", "1/min", onError(c.limit)))
		p.OnError = c.policy
		e, err := policy.NewEngine(&p, lost{}, policy.Options{Local: c.local})
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || e.OnError() != c.want {
			t.Errorf("%+v: %v, %v", c, e.OnError(), err)
		}
	}
}

func TestALocalStoreThatFailsToo(t *testing.T) {
	p := limits(limit(t, "api", "1/min"))
	e, err := policy.NewEngine(&p, lost{}, policy.Options{Local: &storetest.Faults{Script: storetest.Always(storetest.Lost)}})
	if err != nil {
		t.Fatal(err)
	}
	var v policy.Verdict
	e.Check(t.Context(), request("GET", "/", peer), &v)
	if got := fell(&v); got != "allow passes; api allow" || !errors.Is(v.Failed, errLost) || !errors.Is(v.Failed, storetest.ErrFault) {
		t.Errorf("%s, %v", got, v.Failed)
	}
}

func TestAnInstancesShare(t *testing.T) {
	for _, c := range []struct {
		numbers   string
		instances int
		want      string // canonical, of the share; 0 for none
		passes    int    // of 20
	}{
		{"10/min", 1, "10/min", 10},
		{"10/min", 0, "10/min", 10},
		{"10/min", 3, "4/min", 4},
		{"10/min", 1000, "1/min", 1},
		{"10/min burst 7", 3, "4/min burst 3", 3},
		{"10/min as sliding_log", 5, "2/min", 2},
		{"10/min as sliding_counter", 4, "3/min", 3},
		{"10/min as leaky_bucket", 3, "4/min", 4},
		{"0/s", 3, "0/s", 0},
		{"0/s as fixed_window", 3, "0/s", 0},
	} {
		f := join(t, c.instances, limits(limit(t, "a", c.numbers)))
		f.store.be(true)
		if n := f.passes(20, "GET", "/", peer); n != c.passes {
			t.Errorf("%s among %d: %d pass, not %d", c.numbers, c.instances, n, c.passes)
		}
		numbers := f.check(request("GET", "/", peer)).Applied[0].Rule.Limit()
		if got := numbers.String(); got != c.want {
			t.Errorf("%s among %d is %s, not %s", c.numbers, c.instances, got, c.want)
		}
	}
}

func TestAShareKeepsAllElse(t *testing.T) {
	f := join(t, 2, limits(limit(t, "a", "2/min", func(l *policy.Limit) { l.Limit.MaxWait = time.Minute })))
	f.store.be(true)
	f.check(request("GET", "/", peer))
	if v := f.check(request("GET", "/", peer)); !v.Allowed || v.Delay != time.Minute {
		t.Errorf("%+v", v.Outcome)
	}
	f = join(t, 2, limits(limit(t, "a", "4/min as fixed_window", attempts), limit(t, "b", "2/min as fixed_window")))
	f.store.be(true)
	f.passes(3, "GET", "/", peer)
	if got := fell(f.check(request("GET", "/", peer))); got != "local refuses for 1m0s; a local named 0 of 2; b local 0 of 1" {
		t.Error(got)
	}
}

// The number of instances changes while the store is down: what is used stays.
func TestSharesFollowTheInstances(t *testing.T) {
	f := join(t, 2, limits(limit(t, "a", "8/min as fixed_window")))
	f.store.be(true)
	var got []int
	for _, instances := range []int{2, 4, 1} {
		f.store.instances = instances
		got = append(got, f.passes(20, "GET", "/", peer))
	}
	if diff := cmp.Diff([]int{4, 0, 6}, got); diff != "" { // of 4; of 2; of 8, of which 2 are used
		t.Error(diff)
	}
}

// A request that costs more than the share, but not more than the limit, will
// pass when the store is back: it is not told that it never will.
func TestACostOverTheShare(t *testing.T) {
	f := join(t, 4, limits(limit(t, "a", "8/min", cost(pattern(t, "/big"), 5), cost(pattern(t, "/huge"), 9))))
	f.store.be(true)
	if v := f.check(request("GET", "/big", peer)); v.Allowed || v.RetryAfter != time.Second || v.Applied[0].Decision.RetryAfter != time.Second {
		t.Errorf("%+v", v.Outcome)
	}
	if v := f.check(request("GET", "/huge", peer)); v.Allowed || v.RetryAfter != comporta.Never {
		t.Errorf("%+v", v.Outcome)
	}
}

// A share whose burst is rounded up would take over 100 years to fill.
func TestTheSlowestBucketHasShares(t *testing.T) {
	f := join(t, 3, limits(limit(t, "a", "3/399d burst 274")))
	f.store.be(true)
	if v := f.check(request("GET", "/", peer)); !v.Allowed || v.Fallen != policy.Local {
		t.Errorf("%s", fell(v))
	}
}

// A limit that refuses nothing while the store answers refuses nothing while it does not.
func TestWhatMarksDoesNotDeny(t *testing.T) {
	f := join(t, 1, limits(limit(t, "soft", "9/min", func(l *policy.Limit) { l.OnLimit, l.OnError = policy.Demote, policy.Deny })))
	f.store.be(true)
	if v := f.check(request("GET", "/", peer)); !v.Allowed || v.Fallen != policy.Allow {
		t.Errorf("%s", fell(v))
	}
}
