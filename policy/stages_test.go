package policy_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
	"github.com/comporta/comporta/storetest"
)

func TestTheFirstIdentityThatIsProvedCounts(t *testing.T) {
	key, user := &card{kind: "key"}, &card{kind: "user", stage: identity.Credential}
	h := open(t, limits(limit(t, "requests", "2/min", per(identity.First{key, user, socket}))))
	for _, c := range []struct {
		headers []string
		want    string
	}{
		{[]string{"X-Key", "acme", "X-User", "alice"}, "key:acme"},
		{[]string{"X-Key", "forged", "X-User", "alice"}, "user:alice"},
		{[]string{"X-User", "alice"}, "user:alice"},
		{[]string{"X-Key", "forged", "X-User", "forged"}, "address:203.0.113.7"},
		{nil, "address:203.0.113.7"},
	} {
		v := h.check(request("GET", "/", "203.0.113.7", c.headers...))
		if len(v.Applied) != 1 || v.Applied[0].Identity != c.want {
			t.Errorf("%v: counted as %+v, want %s", c.headers, v.Applied, c.want)
		}
	}
	v := h.check(request("GET", "/", "203.0.113.8", "X-Key", "forged"))
	if diff := cmp.Diff(1, len(v.Unproved)); diff != "" || v.Unproved[0] != identity.Source(key) {
		t.Errorf("unproved: %v", v.Unproved)
	}
}

func TestAMissingIdentityIsSaidWhatItIs(t *testing.T) {
	key := &card{kind: "key"}
	h := open(t, limits(
		limit(t, "skipped", "9/min", per(key)),
		limit(t, "by-address", "9/min", per(key), func(l *policy.Limit) { l.OnMissing = policy.ByAddress }),
		limit(t, "pair", "9/min", per(identity.All{key, socket})),
	))
	v := h.check(request("GET", "/", "203.0.113.7"))
	if diff := cmp.Diff([]string{"by-address allows, named"}, told(v)); diff != "" || v.Applied[0].Identity != "address:203.0.113.7" {
		t.Errorf("%s %v", diff, v.Applied)
	}
	v = h.check(request("GET", "/", "203.0.113.7", "X-Key", "acme"))
	if got := v.Applied[2].Identity; got != "all:8=key:acme19=address:203.0.113.7" {
		t.Errorf("joined: %s", got)
	}

	h = open(t, limits(
		limit(t, "all", "2/min"),
		limit(t, "keyed", "9/min", per(key), func(l *policy.Limit) { l.OnMissing = policy.Forbid }),
	))
	for range 2 {
		if v := h.check(request("GET", "/", "203.0.113.7")); v.Allowed || v.Refused == nil || v.Refused.Status != 401 {
			t.Fatalf("without a key: %+v", v)
		}
	}
	// What is refused for itself is charged: a flood of it is denied like any other.
	if v := h.check(request("GET", "/", "203.0.113.7")); v.Allowed || v.Refused != nil {
		t.Errorf("the third without a key: %+v", v)
	}
}

// Nothing dear is done for who is over a cheap limit, and nobody is charged twice.
func TestCheapComesBeforeDear(t *testing.T) {
	user, body := &card{kind: "user", stage: identity.Credential}, &card{kind: "body", stage: identity.Body}
	h := open(t, limits(
		limit(t, "users", "3/min", per(identity.First{user, socket})),
		limit(t, "address", "2/min", attempts),
		limit(t, "accounts", "9/min", per(body)),
	))
	ask := func(peer, who string) *policy.Verdict {
		return h.check(request("POST", "/", peer, "X-User", who, "X-Body", "b"))
	}
	for i := range 5 {
		v := ask("203.0.113.7", "forged")
		if want := i < 2; v.Allowed != want {
			t.Errorf("request %d: allowed %v", i+1, v.Allowed)
		}
	}
	if user.proofs != 2 || body.proofs != 2 {
		t.Errorf("after two allowed: %d proofs of users, %d bodies read", user.proofs, body.proofs)
	}
	// A user over its own limit has no body read.
	for _, peer := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2"} {
		ask(peer, "alice")
	}
	if v := ask("192.0.2.3", "alice"); v.Allowed || body.proofs != 5 {
		t.Errorf("alice's fifth: allowed %v, %d bodies read", v.Allowed, body.proofs)
	}
	// Its attempt counted against the address all the same.
	if v := ask("192.0.2.3", "bob"); !v.Allowed || v.Applied[1].Decision.Remaining != 0 {
		t.Errorf("bob: %+v", v.Applied)
	}
}

func TestARequestThatCannotBeReadIsChargedAndRefused(t *testing.T) {
	body := &card{kind: "body", stage: identity.Body, err: &identity.RequestError{Status: 413, Detail: "Too large."}}
	h := open(t, limits(limit(t, "address", "2/min"), limit(t, "accounts", "9/min", per(body))))
	for i := range 4 {
		v := h.check(request("POST", "/", "203.0.113.7", "X-Body", "b"))
		if refused := v.Refused != nil && v.Refused.Status == 413; v.Allowed || refused != (i < 2) {
			t.Errorf("request %d: %+v", i+1, v)
		}
	}
}

// A store that fails while it is looked at beforehand fails the verdict once, by
// the way that the policy says.
func TestAStoreThatFailsBeforehand(t *testing.T) {
	user := &card{kind: "user", stage: identity.Credential}
	p := limits(limit(t, "address", "2/min"), limit(t, "users", "9/min", per(user)))
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	faults := &storetest.Faults{Store: store, Script: func(int) storetest.Fault { calls++; return storetest.Lost }}
	e, err := policy.NewEngine(&p, faults, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := new(policy.Verdict)
	e.Check(context.Background(), request("GET", "/", "203.0.113.7", "X-User", "alice"), v)
	if !v.Allowed || v.Failed == nil || v.Fallen != policy.Allow || len(v.Applied) != 2 || calls != 1 {
		t.Errorf("%d calls, %+v", calls, v)
	}
	if !errors.Is(v.Failed, storetest.ErrFault) {
		t.Errorf("failed with %v", v.Failed)
	}
}

func TestListsComeFirst(t *testing.T) {
	key, user := &card{kind: "key"}, &card{kind: "user", stage: identity.Credential}
	mallory, _ := user.For("mallory")
	monitor, _ := key.For("monitor")
	p := limits(limit(t, "address", "1/min"))
	p.Allow = []policy.Listed{{Network: prefix("192.0.2.0/24")}, {Source: key, Who: monitor}}
	p.Deny = []policy.Listed{{Network: prefix("198.51.100.0/24")}, {Network: prefix("192.0.2.66/32")}, {Source: user, Who: mallory}}
	h := open(t, p)
	for _, c := range []struct {
		name, peer string
		headers    []string
		want       string
	}{
		{"an allowed network", "192.0.2.1", nil, "listed"},
		{"once more", "192.0.2.1", nil, "listed"},
		{"a denied address of an allowed network", "192.0.2.66", nil, "403"},
		{"a denied network", "198.51.100.7", nil, "403"},
		{"an allowed key", "203.0.113.7", []string{"X-Key", "monitor"}, "listed"},
		{"a denied user from an allowed network", "192.0.2.1", []string{"X-User", "mallory"}, "403"},
		{"a denied user with an allowed key", "203.0.113.7", []string{"X-User", "mallory", "X-Key", "monitor"}, "403"},
		{"nobody's network", "203.0.113.7", nil, "counted"},
		{"once more", "203.0.113.7", nil, "denied"},
	} {
		v, got := h.check(request("GET", "/", c.peer, c.headers...)), "counted"
		switch {
		case v.Refused != nil:
			got = "403"
		case v.Listed && v.Allowed:
			got = "listed"
		case !v.Allowed:
			got = "denied"
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Who is on a list is asked for nothing by the limits, and told nothing of them.
func TestAListedClientIsNotRefusedByALimit(t *testing.T) {
	key, user := &card{kind: "key"}, &card{kind: "user", stage: identity.Credential}
	monitor, _ := key.For("monitor")
	root, _ := user.For("root")
	p := limits(
		limit(t, "users", "9/min", per(user), func(l *policy.Limit) { l.OnMissing = policy.Forbid }),
		limit(t, "address", "1/min"),
	)
	p.Allow = []policy.Listed{{Source: key, Who: monitor}, {Source: user, Who: root}}
	h := open(t, p)
	for range 3 {
		v := h.check(request("GET", "/", "203.0.113.7", "X-Key", "monitor"))
		if !v.Listed || !v.Allowed || v.Refused != nil {
			t.Errorf("%+v", v)
		}
	}
	// Nor while it may still be one who is denied by another name.
	q := p
	mallory, _ := user.For("mallory")
	q.Deny = []policy.Listed{{Source: user, Who: mallory}}
	q.Limits = append([]*policy.Limit{limit(t, "other", "9/min", per(&card{kind: "other"}), func(l *policy.Limit) { l.OnMissing = policy.Forbid })}, p.Limits...)
	h = open(t, q)
	for who, want := range map[string]bool{"alice": true, "mallory": false} {
		if v := h.check(request("GET", "/", "203.0.113.7", "X-Key", "monitor", "X-User", who)); v.Listed != want || v.Allowed != want {
			t.Errorf("%s: %+v", who, v)
		}
	}
	// A look that fails before a list settles it is nobody's business.
	faults := &storetest.Faults{Script: storetest.Always(storetest.Lost)}
	e, err := policy.NewEngine(&p, faults, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := new(policy.Verdict)
	e.Check(context.Background(), request("GET", "/", "203.0.113.7", "X-User", "root"), v)
	if !v.Listed || v.Failed != nil || len(v.Applied) != 0 {
		t.Errorf("%+v", v)
	}
}

// changing is a store where something happens between a look and the take after it.
type changing struct {
	comporta.Store
	after func()
	calls int
}

func (c *changing) Take(ctx context.Context, takes []comporta.Take, out []comporta.Taken) error {
	err := c.Store.Take(ctx, takes, out)
	if c.calls++; c.after != nil {
		after := c.after
		c.after = nil
		after()
	}
	return err
}

// Where the limits that were seen to refuse a request let it pass after all, nothing
// is left of their having been asked.
func TestALookThatWasTooStrict(t *testing.T) {
	user := &card{kind: "user", stage: identity.Credential}
	root, _ := user.For("root")
	p := limits(
		limit(t, "address", "1/min as fixed_window", func(l *policy.Limit) { l.Block = time.Second }),
		limit(t, "users", "1/min as fixed_window", per(user), func(l *policy.Limit) { l.Block = time.Hour }),
	)
	p.Allow = []policy.Listed{{Source: user, Who: root}}
	h := open(t, p)
	memory, err := memstore.New(memstore.Options{Now: func() time.Time { return h.now }})
	if err != nil {
		t.Fatal(err)
	}
	store := &changing{Store: memory}
	if h.Engine, err = policy.NewEngine(&p, store, policy.Options{Now: func() time.Time { return h.now }}); err != nil {
		t.Fatal(err)
	}
	ask := func(who string) *policy.Verdict { return h.check(request("GET", "/", "203.0.113.7", "X-User", who)) }
	later := func() { h.now = h.now.Add(time.Minute) }
	ask("alice")
	store.after = later
	if v := ask("root"); !v.Listed || !v.Allowed || len(v.Applied) != 0 {
		t.Errorf("root: %+v", v)
	}
	if v := ask("alice"); !v.Allowed || v.Applied[0].Decision.Remaining != 0 {
		t.Errorf("alice, of whose budget nothing was left spent: %+v", v)
	}
	// A block is looked at all the same.
	later()
	h.check(request("GET", "/", "203.0.113.8", "X-User", "bob"))
	h.check(request("GET", "/", "203.0.113.9", "X-User", "bob"))
	later()
	ask("carol")
	store.after = later
	if v := ask("bob"); v.Allowed || !v.Applied[1].Blocked {
		t.Errorf("bob is blocked: %+v", v)
	}
}

func TestListsNameClients(t *testing.T) {
	id, err := identity.NewPath("id", secret(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, listed := range map[string]policy.Listed{
		"nobody":         {},
		"no source":      {Who: identity.Who{ID: "key:acme"}},
		"no client":      {Source: socket},
		"part of a path": {Source: id, Who: identity.Who{ID: "path:id:x"}},
	} {
		p := limits()
		p.Deny = []policy.Listed{listed}
		if _, err := policy.NewEngine(&p, lost{}, policy.Options{}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
