package identity_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/comporta/comporta/identity"
)

func forwardedBy(peer string, lines ...string) *identity.Request {
	return &identity.Request{Peer: netip.MustParseAddr(peer), Header: map[string][]string{"Forwarded": lines}}
}

func TestForwardedIsWalkedFromTheRight(t *testing.T) {
	a := address(t, identity.AddressOptions{Trusted: prefixes(t, "10.0.0.0/8"), Header: "forwarded"})
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"no header", nil, "10.0.0.5"},
		{"one element", []string{"for=203.0.113.7"}, "203.0.113.7"},
		{"other parameters", []string{`proto=https;FOR=203.0.113.7 ; by=_proxy;host="a.example:80"`}, "203.0.113.7"},
		{"quotes", []string{`for="203.0.113.7"`}, "203.0.113.7"},
		{"port", []string{`for="203.0.113.7:51034"`}, "203.0.113.7"},
		{"port without quotes", []string{`for=203.0.113.7:51034`}, "203.0.113.7"},
		{"hidden port", []string{`for="203.0.113.7:_x.1-y"`}, "203.0.113.7"},
		{"IPv6", []string{`for="[2001:db8::7]"`}, "2001:db8::7"},
		{"IPv6 and port", []string{`For="[2001:DB8::7]:443"`}, "2001:db8::7"},
		{"IPv6 and hidden port", []string{`For="[2001:DB8::7]:_443"`}, "2001:db8::7"},
		{"mapped", []string{`for="[::ffff:203.0.113.7]"`}, "203.0.113.7"},
		{"forged to the left", []string{"for=9.9.9.9, for=203.0.113.7;proto=http, for=10.0.0.2"}, "203.0.113.7"},
		{"all trusted", []string{"for=10.0.0.9,for=10.0.0.2"}, "10.0.0.9"},
		{"lines are one list", []string{"for=9.9.9.9, for=203.0.113.7", "for=10.0.0.2"}, "203.0.113.7"},
		{"a quoted comma", []string{`for=203.0.113.7;a="x, for=9.9.9.9", for=10.0.0.2`}, "203.0.113.7"},
		{"a quoted comma to the right", []string{`for=9.9.9.9, for=203.0.113.7;a="b, for=10.0.0.2"`}, "203.0.113.7"},
		{"quotes in quotes", []string{`for=9.9.9.9, for=203.0.113.7;a="\", for=8.8.8.8\\", for=10.0.0.2`}, "203.0.113.7"},
		{"an open quote to the left", []string{`for="9.9.9.9, for=203.0.113.7, for="10.0.0.2"`}, "203.0.113.7"},
		{"a backslash to the left", []string{`for="\, for="[2001:db8::7]:443"`}, "2001:db8::7"},
		{"an open quote in a line before", []string{`for="9.9.9.9`, "for=203.0.113.7"}, "203.0.113.7"},
		{"an empty pair", []string{"for=203.0.113.7;;by=x;"}, "203.0.113.7"},
		// What is no address ends the walk.
		{"unknown", []string{"for=203.0.113.7, for=unknown"}, "10.0.0.5"},
		{"unknown further on", []string{"for=203.0.113.7, for=unknown, for=10.0.0.2"}, "10.0.0.2"},
		{"hidden", []string{"for=203.0.113.7, for=_secret, for=10.0.0.2"}, "10.0.0.2"},
		{"no for", []string{"for=203.0.113.7, proto=https, for=10.0.0.2"}, "10.0.0.2"},
		{"an empty element", []string{"for=203.0.113.7, , for=10.0.0.2"}, "10.0.0.2"},
		{"an empty line", []string{"for=203.0.113.7", "", "for=10.0.0.2"}, "10.0.0.2"},
		{"for twice", []string{"for=203.0.113.7;FOR=203.0.113.7"}, "10.0.0.5"},
		{"an empty value", []string{"for="}, "10.0.0.5"},
		{"an empty value in quotes", []string{`for=""`}, "10.0.0.5"},
		{"no value", []string{"for"}, "10.0.0.5"},
		{"an open quote", []string{`for=9.9.9.9, for="203.0.113.7`}, "10.0.0.5"},
		{"a quote within", []string{`for=203.0.113.7"`}, "10.0.0.5"},
		{"text after quotes", []string{`for="203.0.113.7"x`}, "10.0.0.5"},
		{"blanks within quotes", []string{`for=" 203.0.113.7"`}, "10.0.0.5"},
		{"blanks around =", []string{"for = 203.0.113.7"}, "10.0.0.5"},
		{"a blank instead of ;", []string{"for=203.0.113.7 by=x"}, "10.0.0.5"},
		{"escapes in an address", []string{`for="203\.0.113.7"`}, "10.0.0.5"},
		{"an address alone", []string{"203.0.113.7"}, "10.0.0.5"},
		{"a name that is none", []string{"f or=x;for=203.0.113.7"}, "10.0.0.5"},
		{"nobody's address", []string{"for=0.0.0.0"}, "10.0.0.5"},
		{"hidden with a port", []string{"for=_hidden:80"}, "10.0.0.5"},
	} {
		if got := a.Client(forwardedBy("10.0.0.5", c.lines...)).String(); got != c.want {
			t.Errorf("%s: %q: %s, want %s", c.name, c.lines, got, c.want)
		}
	}
	r := forwardedBy("198.51.100.1", "for=203.0.113.7")
	if got := a.Client(r).String(); got != "198.51.100.1" {
		t.Errorf("an untrusted peer was believed: %s", got)
	}
	r = forwardedBy("10.0.0.5", "for=203.0.113.7")
	r.Header["X-Forwarded-For"] = []string{"9.9.9.9"}
	if got := a.Client(r).String(); got != "203.0.113.7" {
		t.Errorf("another header was read: %s", got)
	}
}

// A hostile line costs time in its length and no memory: a walk of 1 MB takes
// milliseconds, where one of the square of that would take hours.
func TestTheWalkOfForwardedIsLinear(t *testing.T) {
	a := address(t, identity.AddressOptions{Trusted: prefixes(t, "10.0.0.0/8"), Header: "Forwarded"})
	for name, line := range map[string]string{
		"all trusted": strings.Repeat(`for="10.0.0.1:80", `, 50_000) + "for=10.0.0.2",
		"quotes":      strings.Repeat(`"`, 1_000_000) + ", for=10.0.0.2",
		"escapes":     strings.Repeat(`\`, 1_000_000) + `", for=10.0.0.2`,
		"escaped":     strings.Repeat(`\"`, 500_000) + ", for=10.0.0.2",
		"pairs":       strings.Repeat("a=b;", 250_000) + "for=10.0.0.2",
	} {
		header := map[string][]string{"Forwarded": {line}}
		n := testing.AllocsPerRun(1, func() {
			r := identity.Request{Header: header, Peer: netip.AddrFrom4([4]byte{10, 0, 0, 5})}
			a.Client(&r)
		})
		if n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// elements are what a proxy may add, and the address in it.
var elements = map[string]string{
	`for=203.0.113.7`:                       "203.0.113.7",
	`For="[2001:db8::7]:80";by=_x`:          "2001:db8::7",
	`a="\\\", for=1.1.1.1";for=203.0.113.7`: "203.0.113.7",
}

func FuzzForwarded(f *testing.F) {
	a := address(f, identity.AddressOptions{Trusted: prefixes(f, "10.0.0.0/8"), Header: "Forwarded"})
	f.Add(`for=9.9.9.9`, `for="[2001:db8::7]:443";by=10.0.0.1`)
	f.Add(`for="a\"`, `,";=\`)
	f.Add(`for=10.0.0.2;a="x, y"`, "")
	f.Fuzz(func(t *testing.T, first, second string) {
		got := a.Client(forwardedBy("10.0.0.5", first, second))
		if !got.IsValid() || got.Zone() != "" || got.Is4In6() || got.IsUnspecified() {
			t.Errorf("%q, %q: %s is no plain address", first, second, got)
		}
		// Whatever a client sent, what a proxy adds behind it is read.
		for element, want := range elements {
			for _, lines := range [][]string{{first, second, element}, {first, second + ", " + element}, {first + "," + element + " , for=10.0.0.2"}} {
				if got := a.Client(forwardedBy("10.0.0.5", lines...)).String(); got != want {
					t.Errorf("%q: %s, want %s", lines, got, want)
				}
			}
		}
	})
}
