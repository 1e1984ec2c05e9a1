package identity_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/comporta/comporta/identity"
)

func secret(t testing.TB, key byte) *identity.Secret {
	t.Helper()
	s, err := identity.NewSecret(bytes.Repeat([]byte{key}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func header(t testing.TB, name string, s *identity.Secret) identity.Header {
	t.Helper()
	h, err := identity.NewHeader(name, s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func under(name string, lines ...string) *identity.Request {
	return &identity.Request{Header: map[string][]string{name: lines}}
}

func TestHeaderValuesAreHashed(t *testing.T) {
	h := header(t, "x-api-key", secret(t, 1))
	id, ok := h.Identity(under("X-Api-Key", "sk_live_51"))
	// HMAC-SHA-256 under 32 bytes of 1 of: 17, "header:x-api-key:", "sk_live_51"; the first 16 bytes.
	if want := "header:x-api-key:f_CSLHnad1V184xmuelI1w"; id != want || !ok {
		t.Errorf("%q, %v, want %q", id, ok, want)
	}
	other, _ := header(t, "x-api-key", secret(t, 2)).Identity(under("X-Api-Key", "sk_live_51"))
	if other == id {
		t.Error("another secret, the same hash")
	}
	tenant, _ := header(t, "x-tenant", secret(t, 1)).Identity(under("X-Tenant", "sk_live_51"))
	if tenant[len("header:x-tenant:"):] == id[len("header:x-api-key:"):] {
		t.Error("the same hash under two names: values could be compared across limits")
	}
}

func TestLinesOfOneHeader(t *testing.T) {
	h := header(t, "X-Tenant", secret(t, 1))
	of := func(lines ...string) string {
		id, ok := h.Identity(under("X-Tenant", lines...))
		if ok != (id != "") {
			t.Errorf("%q: %q, %v", lines, id, ok)
		}
		return id
	}
	for _, lines := range [][]string{nil, {""}, {" \t"}, {"", " "}} {
		if id := of(lines...); id != "" {
			t.Errorf("%q shows %q", lines, id)
		}
	}
	a := of("a")
	for _, lines := range [][]string{{"a", "a"}, {"", "a"}, {"a", ""}, {" a\t"}} {
		if id := of(lines...); id != a {
			t.Errorf("%q is not the client a", lines)
		}
	}
	if of("A") == a {
		t.Error("values differ in case, and are one client")
	}
	// A second line buys no budget of its own, whatever it says.
	several := of("a", "b")
	for _, lines := range [][]string{{"a", "c"}, {"b", "a"}, {"a", "b", "c"}, {"x", "y"}} {
		if id := of(lines...); id != several {
			t.Errorf("%q is %q, not %q", lines, id, several)
		}
	}
	if several == a || several == of("several") {
		t.Error("several lines are taken for a value")
	}
}

func TestPathValuesAreHashed(t *testing.T) {
	s := secret(t, 1)
	p, err := identity.NewPath("tenant", s)
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := p.Identity(&identity.Request{}); ok {
		t.Errorf("no pattern, and yet %q", id)
	}
	r := &identity.Request{PathValues: func(name string) string { return "value of " + name }}
	id, ok := p.Identity(r)
	if !ok || !strings.HasPrefix(id, "path:tenant:") || strings.Contains(id, "value") {
		t.Errorf("%q, %v", id, ok)
	}
}

func TestSourcesSayWhatTheyAre(t *testing.T) {
	s := secret(t, 1)
	p, _ := identity.NewPath("id", s)
	outer, _ := new(identity.Address).Outer(48)
	for want, source := range map[string]identity.Source{
		"address": new(identity.Address), "address/48": outer, "{header: X-Api-Key}": header(t, "x-api-key", s),
		"{path: id}": p, "everyone": identity.Everyone{},
	} {
		if source.String() != want {
			t.Errorf("%q, want %q", source, want)
		}
	}
	if header(t, "X-A", s) != header(t, "x-a", s) || header(t, "X-A", s) == header(t, "X-A", secret(t, 1)) {
		t.Error("headers are equal when name and secret are")
	}
	if id, ok := (identity.Everyone{}).Identity(nil); id != "everyone" || !ok {
		t.Errorf("everyone is %q", id)
	}
}

func TestSourcesRefuse(t *testing.T) {
	s := secret(t, 1)
	for _, name := range []string{"", "X Key", "X:Key", "X-Schlüssel", "Host", "host"} {
		if _, err := identity.NewHeader(name, s); err == nil {
			t.Errorf("the header %q was taken", name)
		}
	}
	for _, name := range []string{"", "{id}", "id...", "a b", "a:b"} {
		if _, err := identity.NewPath(name, s); err == nil {
			t.Errorf("the wildcard %q was taken", name)
		}
	}
	if _, err := identity.NewHeader("X-Key", nil); err == nil {
		t.Error("a header without a secret was taken")
	}
	if _, err := identity.NewPath("id", nil); err == nil {
		t.Error("a path without a secret was taken")
	}
}

func TestSecretIsSetOnce(t *testing.T) {
	if _, err := identity.NewSecret(make([]byte, identity.MinSecret-1)); err == nil {
		t.Error("a short key was taken")
	}
	key := bytes.Repeat([]byte{1}, 32)
	late := new(identity.Secret)
	h := header(t, "X-Key", late) // before the key is known
	if err := late.Set(key); err != nil {
		t.Fatal(err)
	}
	clear(key) // it keeps a copy
	got, _ := h.Identity(under("X-Key", "a"))
	if want, _ := header(t, "X-Key", secret(t, 1)).Identity(under("X-Key", "a")); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := late.Set(bytes.Repeat([]byte{2}, 32)); err == nil {
		t.Error("it was set twice")
	}
	never := new(identity.Secret)
	one, _ := header(t, "X-Key", never).Identity(under("X-Key", "a"))
	two, _ := header(t, "X-Key", new(identity.Secret)).Identity(under("X-Key", "a"))
	if again, _ := header(t, "X-Key", never).Identity(under("X-Key", "a")); again != one || one == two {
		t.Error("a secret that was not set has a random key of its own")
	}
	if err := never.Set(bytes.Repeat([]byte{1}, 32)); err == nil {
		t.Error("it was set after its first use")
	}
}

func TestHashesAreSafeTogetherAndCheap(t *testing.T) {
	h := header(t, "X-Key", secret(t, 1))
	want, _ := h.Identity(under("X-Key", "a"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				h.Identity(under("X-Key", "b"))
				if got, _ := h.Identity(under("X-Key", "a")); got != want {
					t.Errorf("%q, want %q", got, want)
				}
			}
		})
	}
	all.Wait()
	r := under("X-Key", "sk_live_51")
	if n := testing.AllocsPerRun(1000, func() { h.Identity(r) }); n > 1 && !raced {
		t.Errorf("an identity takes %v allocations, not its own text alone", n)
	}
}

func BenchmarkHeader(b *testing.B) {
	h := header(b, "X-Key", secret(b, 1))
	r := under("X-Key", "sk_live_51")
	b.ReportAllocs()
	for b.Loop() {
		h.Identity(r)
	}
}

func BenchmarkAddress(b *testing.B) {
	a := address(b, identity.AddressOptions{Trusted: prefixes(b, "10.0.0.0/8")})
	header := map[string][]string{"X-Forwarded-For": {"9.9.9.9, 198.51.100.23, 10.0.0.7"}}
	peer := forwarded("10.0.0.5").Peer
	b.ReportAllocs()
	for b.Loop() {
		r := identity.Request{Peer: peer, Header: header}
		a.Identity(&r)
	}
}
