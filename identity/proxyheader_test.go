package identity_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta/identity"
)

func proxyHeader(t testing.TB, o identity.ProxyHeaderOptions) *identity.ProxyHeader {
	t.Helper()
	h, err := identity.NewProxyHeader("x-user", prefixes(t, "10.0.0.0/8", "::ffff:192.0.2.0/120"), secret(t, 1), o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// saying is a request from a peer, "" is a Unix socket, with lines of X-User.
func saying(peer string, lines ...string) *identity.Request {
	r := &identity.Request{Header: map[string][]string{"X-User": lines}}
	if peer != "" {
		r.Peer = netip.MustParseAddr(peer)
	}
	return r
}

func TestOnlyAProxysWordIsTaken(t *testing.T) {
	h := proxyHeader(t, identity.ProxyHeaderOptions{})
	alice, err := h.For("alice")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(alice.ID, "proxy:x-user:") || strings.Contains(alice.ID, "alice") || alice.Name != "header:X-User=alice" {
		t.Errorf("%+v", alice)
	}
	if plain, _ := header(t, "X-User", secret(t, 1)).Identity(saying("10.0.0.5", "alice")); plain == alice.ID {
		t.Error("what anybody sends is what a proxy says")
	}
	for _, c := range []struct {
		name, peer string
		lines      []string
		shown      bool
		err        error
	}{
		{"from a proxy", "10.0.0.5", []string{"alice"}, true, nil},
		{"blanks around", "10.0.0.5", []string{" alice\t"}, true, nil},
		{"the same twice", "10.0.0.5", []string{"alice", "alice"}, true, nil},
		{"from a mapped peer", "::ffff:10.0.0.5", []string{"alice"}, true, nil},
		{"from a mapped range", "192.0.2.7", []string{"alice"}, true, nil},
		{"through a Unix socket", "", []string{"alice"}, true, nil},
		{"from anybody", "203.0.113.7", []string{"alice"}, false, nil},
		{"from anybody, IPv6", "2001:db8::1", []string{"alice"}, false, nil},
		{"nothing", "10.0.0.5", nil, false, nil},
		{"blank", "10.0.0.5", []string{" "}, false, nil},
		{"two names", "10.0.0.5", []string{"alice", "mallory"}, false, identity.ErrUnproved},
		{"an empty line before", "10.0.0.5", []string{"", "alice"}, false, identity.ErrUnproved},
		{"an empty line behind", "10.0.0.5", []string{"alice", ""}, false, identity.ErrUnproved},
		{"no text", "10.0.0.5", []string{"al\xffice"}, false, identity.ErrUnproved},
		{"too long", "10.0.0.5", []string{strings.Repeat("a", identity.MaxName+1)}, false, identity.ErrUnproved},
	} {
		r := saying(c.peer, c.lines...)
		who, shown, err := h.Prove(t.Context(), r)
		if shown != c.shown || !errors.Is(err, c.err) || shown && who != alice {
			t.Errorf("%s: %+v, %v, %v", c.name, who, shown, err)
		}
		if id, shown := h.Identity(r); shown != c.shown || id != who.ID || h.Stage(r) != identity.Look {
			t.Errorf("%s: identity %q, %v", c.name, id, shown)
		}
		if len(c.lines) > 0 && c.name[:4] == "from" && h.From(r.Peer) != c.shown {
			t.Errorf("%s: From says otherwise", c.name)
		}
	}
	other := saying("203.0.113.7", "alice")
	other.Header["X-Forwarded-For"] = []string{"10.0.0.5"}
	if _, shown, _ := h.Prove(t.Context(), other); shown {
		t.Error("a forwarding header made a proxy of a client")
	}
}

func TestAProxySaysThePlan(t *testing.T) {
	h := proxyHeader(t, identity.ProxyHeaderOptions{PlanHeader: "x-plan", UnknownPlan: "free", Kind: "user",
		Plans: func(name string) bool { return name == "pro" || name == "free" }})
	if diff := cmp.Diff([]string{"X-User", "X-Plan"}, h.Names()); diff != "" {
		t.Error(diff)
	}
	for plan, lines := range map[string][]string{"free": {"gold"}, "pro": {" pro "}} {
		r := saying("10.0.0.5", "alice")
		r.Header["X-Plan"] = lines
		if who, _, err := h.Prove(t.Context(), r); who.Plan != plan || who.Name != "user:alice" || !strings.HasPrefix(who.ID, "user:") || err != nil {
			t.Errorf("%q: %+v, %v", lines, who, err)
		}
	}
	for _, lines := range [][]string{nil, {""}, {"pro", "gold"}, {"pro", ""}} {
		r := saying("10.0.0.5", "alice")
		r.Header["X-Plan"] = lines
		if who, _, _ := h.Prove(t.Context(), r); who.Plan != "free" {
			t.Errorf("%q: %+v", lines, who)
		}
	}
	if who, err := h.For("al\x1bice"); err != nil || who.Name != `user:"al\x1bice"` {
		t.Errorf("%+v, %v", who, err)
	}
	for _, name := range []string{"", " ", "\xff"} {
		if who, err := h.For(name); err == nil {
			t.Errorf("%q is %+v", name, who)
		}
	}
	if got := proxyHeader(t, identity.ProxyHeaderOptions{}).String() + h.String(); got != "{header: X-User, from: [10.0.0.0/8, 192.0.2.0/24]}user" {
		t.Error(got)
	}
}

func TestProxyHeaderRefuses(t *testing.T) {
	from, s := prefixes(t, "10.0.0.0/8"), secret(t, 1)
	for want, build := range map[string]func() (*identity.ProxyHeader, error){
		"not a header's name": func() (*identity.ProxyHeader, error) {
			return identity.NewProxyHeader("X User", from, s, identity.ProxyHeaderOptions{})
		},
		"nobody's word": func() (*identity.ProxyHeader, error) {
			return identity.NewProxyHeader("X-User", nil, s, identity.ProxyHeaderOptions{})
		},
		"give it a secret": func() (*identity.ProxyHeader, error) {
			return identity.NewProxyHeader("X-User", from, nil, identity.ProxyHeaderOptions{})
		},
		"without an address": func() (*identity.ProxyHeader, error) {
			return identity.NewProxyHeader("X-User", make([]netip.Prefix, 1), s, identity.ProxyHeaderOptions{})
		},
		"go together": func() (*identity.ProxyHeader, error) {
			return identity.NewProxyHeader("X-User", from, s, identity.ProxyHeaderOptions{PlanHeader: "X-Plan"})
		},
		`"X Plan" is not a header's name`: func() (*identity.ProxyHeader, error) {
			return identity.NewProxyHeader("X-User", from, s, identity.ProxyHeaderOptions{PlanHeader: "X Plan", UnknownPlan: "free"})
		},
		"at once": func() (*identity.ProxyHeader, error) {
			return identity.NewProxyHeader("X-User", from, s, identity.ProxyHeaderOptions{PlanHeader: "x-user", UnknownPlan: "free"})
		},
		"not a kind": func() (*identity.ProxyHeader, error) {
			return identity.NewProxyHeader("X-User", from, s, identity.ProxyHeaderOptions{Kind: "address"})
		},
	} {
		if _, err := build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
