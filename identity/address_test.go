package identity_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/comporta/comporta/identity"
)

func prefixes(t testing.TB, texts ...string) []netip.Prefix {
	t.Helper()
	var all []netip.Prefix
	for _, text := range texts {
		p, err := identity.ParsePrefix(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func address(t testing.TB, o identity.AddressOptions) *identity.Address {
	t.Helper()
	a, err := identity.NewAddress(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func forwarded(peer string, lines ...string) *identity.Request {
	r := &identity.Request{Header: map[string][]string{"X-Forwarded-For": lines}}
	if peer != "" {
		r.Peer = netip.MustParseAddr(peer)
	}
	return r
}

func TestClientIsTheFirstFromTheRightThatNobodyVouchesFor(t *testing.T) {
	a := address(t, identity.AddressOptions{Trusted: prefixes(t, "10.0.0.0/8", "172.16.0.0/12", "2001:db8:ffff::/48")})
	for _, c := range []struct {
		name, peer string
		lines      []string
		want       string
	}{
		{"no header", "10.0.0.5", nil, "10.0.0.5"},
		{"empty header", "10.0.0.5", []string{""}, "10.0.0.5"},
		{"untrusted peer", "198.51.100.1", []string{"203.0.113.7"}, "198.51.100.1"},
		{"one entry", "10.0.0.5", []string{"203.0.113.7"}, "203.0.113.7"},
		{"port", "10.0.0.5", []string{"203.0.113.7:51034"}, "203.0.113.7"},
		{"another port", "10.0.0.5", []string{"203.0.113.7:51035"}, "203.0.113.7"},
		{"IPv6", "10.0.0.5", []string{"2001:db8::7"}, "2001:db8::7"},
		{"IPv6 in brackets", "10.0.0.5", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"IPv6 with port", "10.0.0.5", []string{"[2001:db8::7]:443"}, "2001:db8::7"},
		{"IPv6 in capitals", "10.0.0.5", []string{"2001:DB8:0:0::7"}, "2001:db8::7"},
		{"zone", "10.0.0.5", []string{"fe80::1%eth0"}, "fe80::1"},
		{"zone in brackets", "10.0.0.5", []string{"[fe80::1%eth0]:80"}, "fe80::1"},
		{"mapped", "10.0.0.5", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{"mapped in hexadecimal", "10.0.0.5", []string{"::ffff:cb00:7107"}, "203.0.113.7"},
		{"mapped with port", "10.0.0.5", []string{"[::ffff:203.0.113.7]:80"}, "203.0.113.7"},
		{"mapped peer", "::ffff:10.0.0.5", []string{"203.0.113.7"}, "203.0.113.7"},
		{"mapped peer, untrusted", "::ffff:203.0.113.9", nil, "203.0.113.9"},
		{"peer with zone", "fe80::2%eth0", nil, "fe80::2"},
		{"mapped trusted entry", "10.0.0.5", []string{"203.0.113.7, ::ffff:10.1.1.1"}, "203.0.113.7"},
		{"forged to the left", "172.17.0.9", []string{"9.9.9.9, 198.51.100.23, 172.17.0.1"}, "198.51.100.23"},
		{"no blanks", "172.17.0.9", []string{"9.9.9.9,198.51.100.23,172.17.0.1"}, "198.51.100.23"},
		{"tabs and blanks", "172.17.0.9", []string{" 9.9.9.9 ,\t198.51.100.23\t , 172.17.0.1 "}, "198.51.100.23"},
		{"all trusted", "10.0.0.5", []string{"172.16.0.9, 10.0.0.2, 2001:db8:ffff::1"}, "172.16.0.9"},
		{"lines are one list", "10.0.0.5", []string{"9.9.9.9, 198.51.100.23", "172.17.0.1"}, "198.51.100.23"},
		{"a forged line first", "10.0.0.5", []string{"9.9.9.9", "198.51.100.23"}, "198.51.100.23"},
		{"an empty line first", "10.0.0.5", []string{"", "198.51.100.23"}, "198.51.100.23"},
		{"garbage at once", "10.0.0.5", []string{"198.51.100.23, unknown"}, "10.0.0.5"},
		{"garbage further on", "10.0.0.5", []string{"198.51.100.23, garbage, 10.0.0.7"}, "10.0.0.7"},
		{"garbage behind an answer", "10.0.0.5", []string{"garbage, 198.51.100.23, 10.0.0.7"}, "198.51.100.23"},
		{"garbage in another line", "10.0.0.5", []string{"198.51.100.23, x", "10.0.0.7, 10.0.0.8"}, "10.0.0.7"},
		{"an empty entry is garbage", "10.0.0.5", []string{"198.51.100.23, , 10.0.0.7"}, "10.0.0.7"},
		{"nobody's address", "10.0.0.5", []string{"198.51.100.23, 0.0.0.0"}, "10.0.0.5"},
		{"nobody's IPv6", "10.0.0.5", []string{"198.51.100.23, ::, 10.0.0.7"}, "10.0.0.7"},
		{"nobody's, mapped", "10.0.0.5", []string{"::ffff:0.0.0.0"}, "10.0.0.5"},
		{"a port that is none", "10.0.0.5", []string{"203.0.113.7:http"}, "10.0.0.5"},
		{"an empty port", "10.0.0.5", []string{"203.0.113.7:"}, "10.0.0.5"},
		{"a long port", "10.0.0.5", []string{"203.0.113.7:000000080"}, "10.0.0.5"},
		{"an open bracket", "10.0.0.5", []string{"[2001:db8::7"}, "10.0.0.5"},
		{"text after a bracket", "10.0.0.5", []string{"[2001:db8::7]x"}, "10.0.0.5"},
		{"IPv4 in brackets", "10.0.0.5", []string{"[203.0.113.7]"}, "10.0.0.5"},
		{"IPv4 with zone", "10.0.0.5", []string{"203.0.113.7%eth0"}, "10.0.0.5"},
		{"octal", "10.0.0.5", []string{"203.0.113.007"}, "10.0.0.5"},
		{"a host name", "10.0.0.5", []string{"localhost"}, "10.0.0.5"},
		{"quotes", "10.0.0.5", []string{`"203.0.113.7"`}, "10.0.0.5"},
		{"a Unix socket", "", []string{"203.0.113.7"}, "203.0.113.7"},
		{"a Unix socket, and nothing forwarded", "", nil, "invalid IP"},
		{"a Unix socket, and garbage", "", []string{"203.0.113.7, unix:"}, "invalid IP"},
	} {
		if got := a.Client(forwarded(c.peer, c.lines...)).String(); got != c.want {
			t.Errorf("%s: peer %s, %q: %s, want %s", c.name, c.peer, c.lines, got, c.want)
		}
	}
}

func TestOnlyTheChosenHeaderIsRead(t *testing.T) {
	a := address(t, identity.AddressOptions{Trusted: prefixes(t, "10.0.0.5"), Header: "x-real-ip"})
	r := forwarded("10.0.0.5", "9.9.9.9")
	r.Header["X-Real-Ip"] = []string{"203.0.113.7"}
	if got := a.Client(r).String(); got != "203.0.113.7" {
		t.Errorf("%s", got)
	}
	if got := new(identity.Address).Client(forwarded("10.0.0.5", "9.9.9.9")).String(); got != "10.0.0.5" {
		t.Errorf("the zero Address believed a header: %s", got)
	}
}

// One client of each way to write its address.
func TestSpellingsAreOneIdentity(t *testing.T) {
	a := address(t, identity.AddressOptions{Trusted: prefixes(t, "10.0.0.5")})
	for _, c := range [][]string{
		{"address:203.0.113.7", "203.0.113.7:51034", "203.0.113.7:51035", "::ffff:203.0.113.7", "[::ffff:203.0.113.7]:1"},
		{"address:2001:db8::/64", "[2001:db8::7]:443", "2001:db8::7", "2001:db8::8", "2001:db8:0:0:ffff:ffff:ffff:ffff"},
		{"address:2001:db8:1:2::/64", "2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2::3", "2001:db8:1:2::4"},
		{"address:2001:db8:1:3::/64", "2001:db8:1:3::1"},
		{"address:fe80::/64", "fe80::1%eth0", "fe80::1%eth1"},
	} {
		for _, entry := range c[1:] {
			if got, ok := a.Identity(forwarded("10.0.0.5", entry)); got != c[0] || !ok {
				t.Errorf("%s: %q, want %q", entry, got, c[0])
			}
		}
	}
	if got, ok := a.Identity(forwarded("")); got != "address:unix" || !ok {
		t.Errorf("a Unix socket: %q, %v", got, ok)
	}
}

func TestPrefixesOfIPv6(t *testing.T) {
	exact := address(t, identity.AddressOptions{IPv6Prefix: 128})
	one, _ := exact.Identity(forwarded("2001:db8:1:2::1"))
	two, _ := exact.Identity(forwarded("2001:db8:1:2::2"))
	if one == two {
		t.Errorf("with a prefix of 128 each address is a client, not both %q", one)
	}
	outer, err := exact.Outer(48)
	if err != nil {
		t.Fatal(err)
	}
	for peer, want := range map[string]string{
		"2001:db8:1:2::1": "address:2001:db8:1::/48", "2001:db8:1:3::1": "address:2001:db8:1::/48",
		"2001:db8:2::1": "address:2001:db8:2::/48", "203.0.113.7": "", "::ffff:203.0.113.7": "",
	} {
		if got, ok := outer.Identity(forwarded(peer)); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", peer, got, ok, want)
		}
	}
	for _, bits := range []int{0, -1, 64, 65, 128} {
		if s, err := new(identity.Address).Outer(bits); err == nil {
			t.Errorf("an outer prefix of %d beside /64 is %v", bits, s)
		}
	}
}

func TestAddressRefuses(t *testing.T) {
	for want, o := range map[string]identity.AddressOptions{
		"from 1 to 128":                    {IPv6Prefix: 129},
		"not a header's name":              {Header: "X Forwarded"},
		"range without an address":         {Trusted: []netip.Prefix{{}}},
		"beyond the IPv4-mapped addresses": {Trusted: []netip.Prefix{netip.MustParsePrefix("::ffff:0.0.0.0/95")}},
	} {
		if _, err := identity.NewAddress(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", o, err, want)
		}
	}
}

func TestParsePrefix(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/8": "10.0.0.0/8", "10.1.2.3/8": "10.0.0.0/8", "10.1.2.3": "10.1.2.3/32", "2001:db8::1": "2001:db8::1/128",
		"::ffff:10.0.0.0/104": "10.0.0.0/8", "::ffff:10.0.0.1": "10.0.0.1/32", "::/0": "::/0", "0.0.0.0/0": "0.0.0.0/0",
	} {
		if got, err := identity.ParsePrefix(text); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"10.0.0.0/33": "/33 is not a prefix length: from /0 to /32", "10.0.0.0/8x": "/8x is not a prefix length",
		"10.0.0.0/": "/ is not a prefix length", "2001:db8::/129": "from /0 to /128", "10.0.0.0/-1": "not a prefix length",
		"proxy.example.com": "host names are not looked up", "localhost/8": "not an address range", "": "an empty address range",
		"10.0.0": "not an address range", "fe80::1%eth0": "has a zone", "fe80::1%eth0/64": "has a zone",
		"::ffff:10.0.0.0/90": "beyond the IPv4-mapped",
	} {
		if p, err := identity.ParsePrefix(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, error %v, want one with %q", text, p, err, want)
		}
	}
}

// A hostile header costs time in its length and no memory.
func TestTheWalkAllocatesNothing(t *testing.T) {
	a := address(t, identity.AddressOptions{Trusted: prefixes(t, "10.0.0.0/8")})
	for name, line := range map[string]string{
		"all trusted": strings.Repeat("10.0.0.1:80, ", 10_000) + "10.0.0.2",
		"zones":       strings.Repeat("::ffff:10.0.0.1%a, ", 10_000) + "10.0.0.2",
		"one answer":  strings.Repeat("9.9.9.9, ", 10_000) + "203.0.113.7, 10.0.0.2",
	} {
		header := map[string][]string{"X-Forwarded-For": {line}}
		n := testing.AllocsPerRun(10, func() {
			r := identity.Request{Header: header, Peer: netip.AddrFrom4([4]byte{10, 0, 0, 5})}
			a.Client(&r)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	r := identity.Request{Peer: netip.MustParseAddr("2001:db8:1111:2222:3333:4444:5555:6666")}
	if n := testing.AllocsPerRun(100, func() { a.Identity(&r) }); n != 1 {
		t.Errorf("an identity takes %v allocations, not its own text alone", n)
	}
}

// walked is the walk in its plainest form: split, drop, look.
func walked(trusted []netip.Prefix, peer netip.Addr, lines []string) netip.Addr {
	trusts := func(a netip.Addr) bool {
		for _, p := range trusted {
			if p.Contains(a) {
				return true
			}
		}
		return false
	}
	if !trusts(peer) {
		return peer
	}
	if len(lines) == 0 {
		return peer
	}
	entries := strings.Split(strings.Join(lines, ","), ",")
	for i := len(entries) - 1; i >= 0; i-- {
		addr, ok := identity.ParseAddr(entries[i])
		if !ok {
			return peer
		}
		if peer = addr; !trusts(addr) {
			return addr
		}
	}
	return peer
}

func FuzzWalk(f *testing.F) {
	trusted := prefixes(f, "10.0.0.0/8", "::ffff:192.168.0.0/112", "2001:db8:ffff::/48")
	a := address(f, identity.AddressOptions{Trusted: trusted})
	f.Add("10.0.0.1", "203.0.113.7:80, [2001:db8:ffff::1%x]:443", "10.0.0.2")
	f.Add("::ffff:192.168.0.1", "a,,b", "")
	f.Fuzz(func(t *testing.T, peer, first, second string) {
		from, ok := identity.ParseAddr(peer)
		if !ok {
			from = netip.MustParseAddr("10.0.0.9")
		}
		r := &identity.Request{Peer: from, Header: map[string][]string{"X-Forwarded-For": {first, second}}}
		got, want := a.Client(r), walked(trusted, from, []string{first, second})
		if got != want {
			t.Errorf("%s, %q, %q: %s, want %s", peer, first, second, got, want)
		}
		if got.Zone() != "" || got.Is4In6() || got.IsUnspecified() || !got.IsValid() {
			t.Errorf("%q, %q: %s is no plain address", first, second, got)
		}
		id, ok := a.Identity(r)
		if !ok || !strings.HasPrefix(id, "address:") {
			t.Errorf("identity %q, %v", id, ok)
		}
		// Nothing to the left of the client's own entry counts.
		if r := (&identity.Request{Peer: from, Header: map[string][]string{"X-Forwarded-For": {"9.9.9.9", first, second}}}); !a.Trusts(got) && a.Client(r) != got {
			t.Errorf("%q, %q: a line put in front changed the client", first, second)
		}
	})
}
