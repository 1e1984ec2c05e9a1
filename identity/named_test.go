package identity_test

import (
	"testing"

	"github.com/comporta/comporta/identity"
)

// Who is known by a value is who shows it in a request.
func TestClientsAreNamedByValue(t *testing.T) {
	s := secret(t, 1)
	path, err := identity.NewPath("id", s)
	if err != nil {
		t.Fatal(err)
	}
	wide := address(t, identity.AddressOptions{IPv6Prefix: 56})
	for _, c := range []struct {
		source  identity.Named
		value   string
		request *identity.Request
	}{
		{new(identity.Address), "203.0.113.9", forwarded("203.0.113.9")},
		{new(identity.Address), "::ffff:203.0.113.9", forwarded("203.0.113.9")},
		{new(identity.Address), "2001:db8:1:2::9", forwarded("2001:db8:1:2::7")},
		{new(identity.Address), "2001:db8:1:2::/64", forwarded("2001:db8:1:2::7")},
		{wide, "2001:db8:1:200::/56", forwarded("2001:db8:1:2ff::7")},
		{new(identity.Address), "unix", forwarded("")},
		{header(t, "X-Tenant", s), " a ", under("X-Tenant", "a")},
		{path, "a b", &identity.Request{PathValues: func(string) string { return "a b" }}},
		{path, "", &identity.Request{PathValues: func(string) string { return "" }}},
		{identity.Everyone{}, "", nil},
		{identity.Everyone{}, "everyone", nil},
		{proxyHeader(t, identity.ProxyHeaderOptions{}), "alice", saying("10.0.0.5", "alice")},
		{claimed(t, "username", identity.ClaimedOptions{}), "Alice", posted(jsonType, `{"username":"alice"}`)},
	} {
		who, err := c.source.For(c.value)
		id, shown := c.source.Identity(c.request)
		if err != nil || !shown || who.ID != id {
			t.Errorf("%s %q: %q, %v, and the request shows %q, %v", c.source, c.value, who.ID, err, id, shown)
		}
	}
	for _, c := range []struct {
		source identity.Named
		value  string
	}{
		{new(identity.Address), ""}, {new(identity.Address), "localhost"}, {new(identity.Address), "10.0.0.0/8"},
		{new(identity.Address), "203.0.113.9/32"}, {new(identity.Address), "2001:db8::/48"}, {new(identity.Address), "2001:db8::1/64"},
		{header(t, "X-Tenant", s), " "}, {header(t, "X-Tenant", s), "a\nb"}, {identity.Everyone{}, "alice"},
	} {
		if who, err := c.source.For(c.value); err == nil {
			t.Errorf("%s %q: %q", c.source, c.value, who.ID)
		}
	}
}
