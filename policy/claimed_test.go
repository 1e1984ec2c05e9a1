package policy_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// login is one attempt to log in as somebody.
func login(peer, name string) *identity.Request {
	r := request("POST", "/login", peer, "Content-Type", "application/x-www-form-urlencoded")
	body := []byte("username=" + name + "&password=x")
	r.Body = func(_ context.Context, most int) ([]byte, bool, error) {
		return body[:min(most, len(body))], len(body) <= most, nil
	}
	return r
}

// One address that claims ever new names makes no ever new keys.
func TestNewClaimedKeysAreCapped(t *testing.T) {
	claimed, err := identity.NewClaimed("username", secret(t), identity.ClaimedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := limits(limit(t, "account", "5/15m as sliding_log", per(claimed)))
	p.Address = socket
	p.Claimed.NewKeys = numbers(t, "10/min")
	h := open(t, p)
	names := map[string]int{}
	for i := range 100 {
		v := h.check(login("203.0.113.7", fmt.Sprint("victim", i)))
		if len(v.Applied) == 1 {
			names[v.Applied[0].Identity]++
		}
	}
	if len(names) != 11 || names["address:203.0.113.7"] != 90 {
		t.Errorf("%d keys, %d by the address", len(names), names["address:203.0.113.7"])
	}
	// From elsewhere those names are free still, and a name that is known stays known.
	if v := h.check(login("203.0.113.8", "victim50")); !v.Allowed || v.Applied[0].Identity == "address:203.0.113.8" {
		t.Errorf("from elsewhere: %+v", v.Applied)
	}
	if v := h.check(login("203.0.113.7", "victim3")); !v.Allowed || v.Applied[0].Decision.Remaining != 3 {
		t.Errorf("a name that is known: %+v", v.Applied)
	}
}

// Who may not be told apart by a name is not told apart by leaving it out either.
func TestAClaimThatIsMissingCountsByTheAddress(t *testing.T) {
	claimed, err := identity.NewClaimed("username", secret(t), identity.ClaimedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := limits(limit(t, "account", "2/15m", per(identity.All{claimed, socket})))
	p.Address = socket
	h := open(t, p)
	if got := h.passes(4, "POST", "/login", "203.0.113.7"); got != 2 {
		t.Errorf("%d without a name pass, want 2", got)
	}
	if v := h.check(login("203.0.113.7", "alice")); !v.Allowed {
		t.Errorf("alice: %+v", v)
	}
}

// New keys are counted when the request is denied, too, where it makes them.
func TestDeniedRequestsMakeNoEndlessKeys(t *testing.T) {
	block := func(l *policy.Limit) { l.Block = time.Hour }
	for name, set := range map[string]func(l *policy.Limit){
		"attempts":      attempts,
		"a short block": func(l *policy.Limit) { block(l); cost(nil, 9)(l) },
	} {
		t.Run(name, func(t *testing.T) {
			claimed, err := identity.NewClaimed("username", secret(t), identity.ClaimedOptions{})
			if err != nil {
				t.Fatal(err)
			}
			p := limits(limit(t, "account", "5/15m", per(claimed), set), limit(t, "none", "0/s", per(identity.All{claimed, socket})))
			p.Address = socket
			p.Claimed.NewKeys = numbers(t, "10/min")
			h := open(t, p)
			names := map[string]bool{}
			for i := range 50 {
				v := h.check(login("203.0.113.7", fmt.Sprint("victim", i)))
				names[v.Applied[0].Identity] = true
			}
			if len(names) != 11 {
				t.Errorf("%d keys", len(names))
			}
		})
	}
}

// Who is counted by the address for making up names is blocked by the address, and
// by the numbers that hold for the address.
func TestTheAddressOfMadeUpNames(t *testing.T) {
	claimed, err := identity.NewClaimed("username", secret(t), identity.ClaimedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := limits(limit(t, "account", "5/s", per(claimed), func(l *policy.Limit) { l.Block = time.Hour }))
	p.Address = socket
	p.Claimed.NewKeys = numbers(t, "1/h")
	p.Overrides = []*policy.Override{{Who: policy.Listed{Network: prefix("192.0.2.0/24")}, Limits: map[string]comporta.Limit{"account": numbers(t, "2/s")}}}
	h := open(t, p)
	for peer, most := range map[string]int{"203.0.113.7": 6, "192.0.2.7": 3} {
		got := 0
		for i := range 20 {
			if i == 10 {
				h.now = h.now.Add(time.Minute)
			}
			if h.check(login(peer, fmt.Sprint(peer, i))).Allowed {
				got++
			}
		}
		if got != most {
			t.Errorf("%s: %d pass, want %d", peer, got, most)
		}
	}
}

// An operator's numbers for a name hold for whoever makes up other names first.
func TestANamedClaimIsNoNewOne(t *testing.T) {
	claimed, err := identity.NewClaimed("username", secret(t), identity.ClaimedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	root, _ := claimed.For("root")
	p := limits(limit(t, "account", "50/min", per(claimed)))
	p.Address = socket
	p.Claimed.NewKeys = numbers(t, "2/h")
	p.Overrides = []*policy.Override{{Who: policy.Listed{Source: claimed, Who: root}, Limits: map[string]comporta.Limit{"account": numbers(t, "0/s")}}}
	h := open(t, p)
	for i := range 3 {
		h.check(login("203.0.113.7", fmt.Sprint("made up ", i)))
	}
	if v := h.check(login("203.0.113.7", "root")); v.Allowed {
		t.Errorf("root: %+v", v.Applied)
	}
}

// Where the policy says so, headers that anybody may send make no ever new keys either.
func TestNewKeysOfHeadersAreCappedWhereThatIsSaid(t *testing.T) {
	tenant, err := identity.NewHeader("X-Tenant", secret(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range []bool{false, true} {
		p := limits(limit(t, "tenant", "5/min", per(tenant)))
		p.Address = socket
		p.Claimed = policy.Claimed{NewKeys: numbers(t, "10/min"), All: all}
		h := open(t, p)
		names := map[string]bool{}
		for i := range 50 {
			v := h.check(request("GET", "/", "203.0.113.7", "X-Tenant", fmt.Sprint("t", i)))
			names[v.Applied[0].Identity] = true
		}
		if want := map[bool]int{false: 50, true: 11}[all]; len(names) != want {
			t.Errorf("all %v: %d keys, want %d", all, len(names), want)
		}
		if v := h.check(request("GET", "/", "203.0.113.7")); len(v.Applied) != 0 {
			t.Errorf("without a tenant: %+v", v.Applied)
		}
	}
}
