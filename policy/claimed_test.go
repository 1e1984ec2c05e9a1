package policy_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/comporta/comporta/identity"
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
