package policy_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

func numbers(t testing.TB, text string) comporta.Limit {
	t.Helper()
	l, err := comporta.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// from is whose numbers each limit went by, and what a full budget held.
func from(v *policy.Verdict) (lines []string) {
	for _, a := range v.Applied {
		lines = append(lines, a.Limit.Name+" by "+a.From)
	}
	return lines
}

func TestPlansAndOverridesReplaceALimitsNumbers(t *testing.T) {
	key := &card{kind: "key"}
	acme, _ := key.For("acme")
	p := limits(limit(t, "requests", "2/min as sliding_log", per(identity.First{key, socket})))
	p.Plans = map[string]policy.Plan{
		"pro":   {"requests": numbers(t, "4/min")},
		"whole": {"requests": numbers(t, "unlimited")},
	}
	p.Overrides = []*policy.Override{
		{Who: policy.Listed{Source: key, Who: acme}, Limits: map[string]comporta.Limit{"requests": numbers(t, "6/min")}, Until: epoch.Add(time.Hour), Line: 80},
		{Who: policy.Listed{Network: prefix("192.0.2.0/24")}, Limits: map[string]comporta.Limit{"requests": numbers(t, "5/min")}},
		{Who: policy.Listed{Network: prefix("192.0.2.9/32")}, Limits: map[string]comporta.Limit{"requests": numbers(t, "unlimited")}},
	}
	h := open(t, p)
	for _, c := range []struct {
		peer, key string
		want      int
		from      string
	}{
		{"203.0.113.7", "free", 2, "limit"},
		{"203.0.113.7", "other of pro", 4, "plan pro"},
		{"203.0.113.7", "third of whole", 9, "plan whole"},
		{"203.0.113.7", "fourth of nothing", 2, "limit"},
		{"203.0.113.7", "acme of pro", 6, "override (line 80)"},
		{"203.0.113.7", "", 2, "limit"},
		{"192.0.2.1", "", 5, "override (run time)"},
		{"192.0.2.9", "", 9, "override (run time)"},
		{"192.0.2.2", "free2", 2, "limit"}, // the address's override is not the key's
	} {
		var headers []string
		if c.key != "" {
			headers = []string{"X-Key", c.key}
		}
		if got := h.passes(9, "GET", "/", c.peer, headers...); got != c.want {
			t.Errorf("%s %s: %d pass, want %d", c.peer, c.key, got, c.want)
		}
		v := h.check(request("GET", "/", c.peer, headers...))
		if diff := cmp.Diff("requests by "+c.from, strings.Join(from(v), ", ")); diff != "" {
			t.Errorf("%s %s: %s", c.peer, c.key, diff)
		}
	}
	// When the override ends, what was used stays: six of four.
	h.now = h.now.Add(time.Hour)
	if got := h.passes(9, "GET", "/", "203.0.113.7", "X-Key", "acme of pro"); got != 4 {
		t.Errorf("after the override: %d pass, want 4", got)
	}
}

func TestChangingThePlanKeepsWhatWasUsed(t *testing.T) {
	key := &card{kind: "key"}
	quota, err := comporta.ParseQuota("10/day")
	if err != nil {
		t.Fatal(err)
	}
	p := limits(&policy.Limit{Name: "daily", Per: key, Limit: quota})
	pro, _ := comporta.ParseQuota("20/day")
	p.Plans = map[string]policy.Plan{"pro": {"daily": pro}}
	h := open(t, p)
	if got := h.passes(8, "GET", "/", "203.0.113.7", "X-Key", "acme"); got != 8 {
		t.Fatalf("%d pass", got)
	}
	if got := h.passes(20, "GET", "/", "203.0.113.7", "X-Key", "acme of pro"); got != 12 {
		t.Errorf("after the change to pro %d pass, want 12", got)
	}
	if got := h.passes(5, "GET", "/", "203.0.113.7", "X-Key", "acme"); got != 0 {
		t.Errorf("back again %d pass, want none", got)
	}
}

func TestAnOverrideOfAnAddressIsNotBoundByTheRangeAroundIt(t *testing.T) {
	p := limits(limit(t, "address", "1/min"))
	p.IPv6Outer.Times = 2
	p.Address = socket
	who := identity.Who{ID: "address:2001:db8:1:1::/64"}
	p.Overrides = []*policy.Override{{Who: policy.Listed{Source: socket, Who: who}, Limits: map[string]comporta.Limit{"address": numbers(t, "8/min")}}}
	h := open(t, p)
	if got := h.passes(9, "GET", "/", "2001:db8:1:1::1"); got != 8 {
		t.Errorf("the overridden /64: %d pass, want 8", got)
	}
	got := 0
	for _, peer := range []string{"2001:db8:1:2::1", "2001:db8:1:3::1", "2001:db8:1:4::1", "2001:db8:1:5::1"} {
		got += h.passes(1, "GET", "/", peer)
	}
	if got != 2 {
		t.Errorf("the others of the /48: %d pass, want 2", got)
	}
}

func TestRunTimeOverridesOutliveAReload(t *testing.T) {
	key := &card{kind: "key"}
	acme, _ := key.For("acme")
	p := limits(limit(t, "requests", "2/min", per(key)))
	h := open(t, p)
	if err := h.SetOverrides([]*policy.Override{{Who: policy.Listed{Source: key, Who: acme}, Limits: map[string]comporta.Limit{"gone": numbers(t, "6/min")}}}); err == nil {
		t.Error("an override of no limit was taken")
	}
	override := &policy.Override{Who: policy.Listed{Source: key, Who: acme}, Limits: map[string]comporta.Limit{"requests": numbers(t, "6/min")}}
	if err := h.SetOverrides([]*policy.Override{override}); err != nil {
		t.Fatal(err)
	}
	if got := h.passes(9, "GET", "/", "203.0.113.7", "X-Key", "acme"); got != 6 {
		t.Errorf("%d pass, want 6", got)
	}
	// Without the limit it waits, with it it holds again.
	other := limits(limit(t, "other", "2/min", per(key)))
	next, err := policy.NewEngine(&other, lost{}, policy.Options{Before: h.Engine})
	if err != nil {
		t.Fatal(err)
	}
	again, err := policy.NewEngine(&p, lost{}, policy.Options{Before: next})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(1, len(again.Overrides())); diff != "" {
		t.Error(diff)
	}
}

func TestAShareOfClientsIsHeld(t *testing.T) {
	key := &card{kind: "key"}
	p := limits(limit(t, "requests", "1/min", per(key), func(l *policy.Limit) { l.Share = 25 }))
	p.Secret = secret(t)
	h := open(t, p)
	held := map[string]bool{}
	names := strings.Fields(strings.Repeat("x ", 400))
	for i := range names {
		names[i] = "k" + strings.Repeat("i", i)
		held[names[i]] = h.passes(2, "GET", "/", "203.0.113.7", "X-Key", names[i]) == 1
	}
	n := 0
	for _, is := range held {
		if is {
			n++
		}
	}
	if n < 70 || n > 130 {
		t.Errorf("%d of 400 clients are held, want about 100", n)
	}
	h = open(t, p)
	for _, name := range names[:20] {
		if is := h.passes(2, "GET", "/", "203.0.113.7", "X-Key", name) == 1; is != held[name] {
			t.Errorf("%s is held: %v, and before: %v", name, is, held[name])
		}
	}
}

func TestLookingSpendsNothing(t *testing.T) {
	key, user := &card{kind: "key"}, &card{kind: "user", stage: identity.Credential}
	p := limits(
		limit(t, "requests", "3/min", per(identity.First{key, user, socket})),
		limit(t, "search", "2/min as sliding_counter", match(t, "GET /search"), per(key)),
	)
	p.Plans = map[string]policy.Plan{"pro": {"requests": numbers(t, "9/min")}}
	h := open(t, p)
	v := new(policy.Verdict)
	for range 9 {
		h.Look(context.Background(), request("GET", "/search", "203.0.113.7", "X-Key", "acme"), v)
		if !v.Allowed || v.Applied[0].Decision.Remaining != 3 || v.Applied[1].Decision.Remaining != 2 {
			t.Fatalf("looked at: %+v", v)
		}
	}
	h.passes(2, "GET", "/search", "203.0.113.7", "X-Key", "acme")
	ask := request("GET", "/search", "203.0.113.7", "X-Key", "acme")
	h.Look(context.Background(), ask, v)
	looked := v.RetryAfter
	if v.Allowed || looked == 0 || looked != h.check(ask).RetryAfter {
		t.Errorf("looked %v, and asked %v", looked, h.check(ask).RetryAfter)
	}
	h.LookAtCaller(context.Background(), request("GET", "/elsewhere", "203.0.113.7", "X-Key", "acme"), v)
	if len(v.Applied) != 2 {
		t.Errorf("the caller's limits: %v", told(v))
	}

	// A user's plan is known once it has been seen.
	who, _ := user.For("alice")
	alice := policy.Listed{Source: user, Who: who}
	if err := h.LookAt(context.Background(), alice, v); !errors.Is(err, policy.ErrPlan) {
		t.Errorf("alice, never seen: %v", err)
	}
	h.passes(4, "GET", "/", "203.0.113.7", "X-User", "alice of pro")
	if err := h.LookAt(context.Background(), alice, v); err != nil || v.Applied[0].Decision.Remaining != 5 {
		t.Errorf("alice: %v, %+v", err, v.Applied)
	}
	// Of a user who came without one it is known that there is none.
	bob, _ := user.For("bob")
	h.passes(1, "GET", "/", "203.0.113.7", "X-User", "bob")
	if err := h.LookAt(context.Background(), policy.Listed{Source: user, Who: bob}, v); err != nil || v.Applied[0].Decision.Limit != 3 {
		t.Errorf("bob: %v, %+v", err, v.Applied)
	}
	if d, err := h.Grant(context.Background(), alice, "requests", 3); err != nil || d.Remaining != 8 {
		t.Errorf("granted: %v, %+v", err, d)
	}
}

// What looking foresees is what asking then gets, for every algorithm and cost.
func TestLookForeseesWhatAskingGets(t *testing.T) {
	for _, algorithm := range comporta.Algorithms() {
		for _, units := range []int64{1, 3, 7, 11} {
			l := limit(t, "a", "10/min as "+algorithm.String(), cost(pattern(t, "GET /dear"), units))
			h := open(t, limits(l))
			for range 12 {
				dear := request("GET", "/dear", "203.0.113.7")
				v := new(policy.Verdict)
				h.Look(context.Background(), dear, v)
				got := h.check(dear)
				sliding := algorithm == comporta.SlidingLog || algorithm == comporta.SlidingCounter
				if v.Allowed != got.Allowed || v.Delay != got.Delay ||
					v.RetryAfter != got.RetryAfter && !(sliding && v.RetryAfter > got.RetryAfter) {
					t.Errorf("%v, cost %d: looked %+v, asked %+v", algorithm, units, v.Outcome, got.Outcome)
				}
				h.now = h.now.Add(1700 * time.Millisecond)
			}
		}
	}
}

// What a plan allows is allowed to the range around an address in the same measure.
func TestPlansWidenTheRangeAroundAnAddress(t *testing.T) {
	key := &card{kind: "key"}
	p := limits(limit(t, "pair", "1/min as fixed_window", per(identity.All{key, socket})))
	p.IPv6Outer.Times = 2
	p.Plans = map[string]policy.Plan{"pro": {"pair": numbers(t, "4/min")}, "whole": {"pair": numbers(t, "unlimited")}}
	h := open(t, p)
	for plan, want := range map[string]int{"none": 2, "pro": 8, "whole": 12} {
		got := 0
		for _, peer := range []string{"2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:3::1"} {
			got += h.passes(4, "GET", "/", peer, "X-Key", plan+" of "+plan)
		}
		if got != want {
			t.Errorf("plan %s: %d pass, want %d", plan, got, want)
		}
	}
}

// What is said of keys beside a limit's own is said of nothing.
func TestNumbersAreForLimitsThatThereAre(t *testing.T) {
	said := map[string]comporta.Limit{"address.outer": numbers(t, "5/min")}
	block := func(l *policy.Limit) { l.Block = time.Second }
	for name, set := range map[string]func(p *policy.Policy){
		"plan": func(p *policy.Policy) { p.Plans = map[string]policy.Plan{"pro": said} },
		"override": func(p *policy.Policy) {
			p.Overrides = []*policy.Override{{Who: policy.Listed{Network: prefix("192.0.2.0/24")}, Limits: said}}
		},
	} {
		p := limits(limit(t, "address", "1/min", block))
		set(&p)
		if _, err := policy.NewEngine(&p, lost{}, policy.Options{}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// A limit that is unlimited for a client is not the one that headers name, whatever
// it is for others.
func TestWhatIsUnlimitedForAClientIsNotNamed(t *testing.T) {
	key := &card{kind: "key"}
	p := limits(
		limit(t, "a", "9/min", per(key), show),
		limit(t, "b", "unlimited", per(key)),
	)
	p.Plans = map[string]policy.Plan{"whole": {"a": numbers(t, "unlimited")}, "small": {"a": numbers(t, "unlimited"), "b": numbers(t, "3/min")}}
	h := open(t, p)
	for who, want := range map[string]int{"x": 0, "y of whole": -1, "z of small": 1} {
		if v := h.check(request("GET", "/", "203.0.113.7", "X-Key", who)); v.Named != want {
			t.Errorf("%s: named %d, want %d", who, v.Named, want)
		}
	}
}

func TestPlansAreRememberedOverAReload(t *testing.T) {
	user := &card{kind: "user", stage: identity.Credential}
	alice, _ := user.For("alice")
	p := limits(limit(t, "requests", "2/min", per(user)))
	p.Plans = map[string]policy.Plan{"pro": {"requests": numbers(t, "4/min")}}
	p.Overrides = []*policy.Override{{Who: policy.Listed{Source: user, Who: alice}, Limits: p.Plans["pro"]}}
	h := open(t, p)
	h.check(request("GET", "/", "203.0.113.7", "X-User", "alice of pro"))
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	next, err := policy.NewEngine(&p, store, policy.Options{Before: h.Engine})
	if err != nil {
		t.Fatal(err)
	}
	if err := next.LookAt(t.Context(), policy.Listed{Source: user, Who: alice}, new(policy.Verdict)); err != nil {
		t.Error(err)
	}
}

// The caller's own limits are looked at without the body, whatever comes with it.
func TestTheCallersLimitsNeedNoBody(t *testing.T) {
	l := limit(t, "tokens", "9000/min", func(l *policy.Limit) {
		l.Estimate = &policy.Estimate{RequestJSON: "max_tokens", Default: 5, ResponseHeader: "X-Cost"}
	})
	h := open(t, limits(l))
	r := login("203.0.113.7", "alice")
	v := new(policy.Verdict)
	h.LookAtCaller(t.Context(), r, v)
	if len(v.Applied) != 1 || v.Applied[0].Decision.Remaining != 9000 || r.Body == nil {
		t.Errorf("%+v", v)
	}
}

// A request that says it costs more than can be counted is not charged less for it.
func TestAnEstimateOverAllBounds(t *testing.T) {
	l := limit(t, "tokens", "9000/min", func(l *policy.Limit) {
		l.Estimate = &policy.Estimate{RequestJSON: "max_tokens", Default: 5, ResponseHeader: "X-Cost"}
	})
	h := open(t, limits(l))
	r := request("POST", "/", "203.0.113.7", "Content-Type", "application/json")
	r.Body = func(context.Context, int) ([]byte, bool, error) {
		return []byte(`{"max_tokens": 9007199254740993}`), true, nil
	}
	if v := h.check(r); v.Allowed || v.RetryAfter != comporta.Never {
		t.Errorf("%+v", v)
	}
}

// A body that is no JSON is not waited for: the estimate is the default.
func TestAnEstimateWaitsForNoStream(t *testing.T) {
	l := limit(t, "tokens", "9000/min", func(l *policy.Limit) {
		l.Estimate = &policy.Estimate{RequestJSON: "max_tokens", Default: 5, ResponseHeader: "X-Cost"}
	})
	h := open(t, limits(l))
	r := request("POST", "/", "203.0.113.7", "Content-Type", "application/grpc")
	r.Body = func(context.Context, int) ([]byte, bool, error) {
		t.Error("the body was read")
		return nil, true, nil
	}
	if v := h.check(r); !v.Allowed || v.Applied[0].Cost != 5 {
		t.Errorf("%+v", v)
	}
}
