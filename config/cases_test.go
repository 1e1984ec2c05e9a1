package config

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// one is a file of one limit, whose limit is written as said, at line 2, column 42.
func one(said string) []byte {
	return []byte("limits:\n  - {name: one, per: address, limit:    " + said + "}\n")
}

// C01: what cannot be a limit is refused with its place and its limit's name; a
// limit of 0 is one, and said to refuse all. Nothing is dropped, nothing becomes
// "no limit".
func TestImpossibleLimitsAreRefusedAtTheirPlace(t *testing.T) {
	for _, said := range []string{
		"100/0s", "100/-1s", "-100/s", "100", "100/", "100/secnod", "5/s burst 0", "0/s burst 5",
		"5/s burst -1", "0", "", "1e3/s", "0x10/s", "100 / s", "100/min burst", "18446744073709551616/s",
		"100/99999999999999999999s", "100/1ns", "NaN/s", "true", "~", "[100/s]", "{100: s}",
		"0/0s", "0s", "1.5/s", "10 /min", "1,000/s", "1__0/s", "+1/s", "100/60", "100/0.5s", "100/999us", "100/401d", "3/10000000000s", "3/1e10s",
		"1000000000001/s", "5/s burst 1.5", "5/s Burst 7", "unlimited burst 5", "none", "100/day", "100/month", "1/400d burst 92", "100/1s1s",
	} {
		_, err := Parse("x.yaml", one(said))
		var problems Problems
		if !errors.As(err, &problems) {
			t.Errorf("limit: %s: got %v, want problems", said, err)
			continue
		}
		for _, p := range problems {
			if p.Line != 2 || p.Column < 31 || p.Hint == "" || !strings.Contains(p.Text, `limit "one"`) {
				t.Errorf("limit: %s: not at its place, or without its limit's name, or without a hint: %+v", said, p)
			}
		}
	}
	for _, said := range []string{"0/s", "0/min", "00/min", "0/24h"} {
		c, err := Parse("x.yaml", one(said))
		if err != nil {
			t.Errorf("limit: %s: %v", said, err)
			continue
		}
		var text bytes.Buffer
		if err := c.WriteText(&text); err != nil || !strings.Contains(text.String(), "refuses every request") || len(c.Warnings) != 1 || c.Warnings[0].Code != "W-ZERO" {
			t.Errorf("limit: %s: the check does not say that it refuses all: %v\n%s", said, c.Warnings, text.String())
		}
		if len(c.Policy.Limits) != 1 || c.Policy.Limits[0].Limit.Unlimited {
			t.Errorf("limit: %s became %+v", said, c.Policy.Limits)
		}
	}
}

// C03: one bad range stops the start; mapped ranges are what they map; ranges
// that hold everybody are warned of.
func TestTrustedProxiesAreAllUnderstoodOrNone(t *testing.T) {
	file := func(entry string) []byte {
		return fmt.Appendf(nil, "identities:\n  address:\n    trusted_proxies: [192.0.2.1, %q]\nlimits: []\n", entry)
	}
	for _, entry := range []string{"10.0.0.0/33", "10.0.0.0/8x", "10.0.0.0/-1", "10.0.0.0/", "10.0.0/8", "proxy.example.com", "localhost", "", " ", "10.0.0.1/8", "::1/-1", "::/129", "fe80::1%eth0", "10.0.0.0/08", "*"} {
		_, err := Parse("x.yaml", file(entry))
		var problems Problems
		if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Line != 3 || problems[0].Column != 34 {
			t.Errorf("%q: got %v, want one problem at 3:34", entry, err)
		}
	}
	for entry, want := range map[string]string{
		"::ffff:10.0.0.0/104": "10.0.0.0/8", "10.0.0.0/8": "10.0.0.0/8", "::ffff:192.0.2.7": "192.0.2.7/32", "2001:db8::/32": "2001:db8::/32",
	} {
		c, err := Parse("x.yaml", file(entry))
		if err != nil {
			t.Errorf("%q: %v", entry, err)
			continue
		}
		if got := c.addresses.trusted[1]; got != netip.MustParsePrefix(want) {
			t.Errorf("%q is %v, want %v", entry, got, want)
		}
		if !c.Policy.Address.Trusts(netip.MustParsePrefix(want).Addr()) {
			t.Errorf("%q is read and not trusted", entry)
		}
	}
	for entry, want := range map[string]string{
		"0.0.0.0/0": "W-TRUST-ALL", "::/0": "W-TRUST-ALL", "::ffff:0.0.0.0/96": "W-TRUST-ALL",
		"0.0.0.0/1": "W-TRUST-BROAD", "2000::/3": "W-TRUST-BROAD", "8.0.0.0/7": "W-TRUST-BROAD", "10.0.0.0/7": "W-TRUST-BROAD",
		"10.0.0.0/8": "", "fc00::/7": "", "104.16.0.0/13": "", "2400:cb00::/32": "",
	} {
		c, err := Parse("x.yaml", file(entry))
		if err != nil {
			t.Errorf("%q: %v", entry, err)
			continue
		}
		got := ""
		for _, w := range c.Warnings {
			if strings.HasPrefix(w.Code, "W-TRUST") {
				got = w.Code
			}
		}
		if got != want {
			t.Errorf("%q: warned %q, want %q", entry, got, want)
		}
	}
}

// What a database of zones holds beside the IANA names is another zone on each
// machine, or on some none.
func TestZonesAreTheSameOnEachMachine(t *testing.T) {
	for _, zone := range []string{"Local", "localtime", "posixrules", "posix/Europe/Paris", "right/Europe/Paris", "europe/Paris2", "PST", "GMT+2", `"+02:00"`, "../UTC"} {
		if _, err := Parse("x.yaml", []byte("time_zone: "+zone+"\nlimits: []\n")); err == nil || !strings.Contains(err.Error(), "unknown time zone") {
			t.Errorf("%s: %v", zone, err)
		}
	}
	for _, zone := range []string{"UTC", "EST", "Etc/GMT+2", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Argentina/Ushuaia"} {
		if _, err := Parse("x.yaml", []byte("time_zone: "+zone+"\nlimits: []\n")); err != nil {
			t.Error(err)
		}
	}
}

// Quotes around text never hurt; around a number they make it text.
func TestQuotesAroundTextNeverHurt(t *testing.T) {
	for text, want := range map[string]bool{
		`server: {max_body_bytes: "16KiB"}`: true, `server: {max_body_bytes: "16"}`: false, `server: {max_body_bytes: "16KB"}`: false,
		`limits: [{name: a, per: address, limit: "5/s", charge: "failures", failure: {status: ["4xx", '5xx']}}]`: true,
		`limits: [{name: a, per: address, limit: 5/s, charge: failures, failure: {status: "401"}}]`:              false,
		`limits: [{name: a, per: address, quota: "5/day", starts_at: "06:00", warn_at: "80%", block: "10m"}]`:    true,
	} {
		if _, err := Parse("x.yaml", []byte(text)); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestMethodsThatLookLikeOthersAreWarnedOf(t *testing.T) {
	for pattern, want := range map[string]string{
		"POTS /login": "did you mean POST?", "GETT /": "did you mean GET?", "DELTE /a": "did you mean DELETE?",
		"POST /login": "", "PURGE /": "", "PROPFIND /": "", "/": "", "GET /": "",
	} {
		for _, word := range []string{"match: ", "except: ", "cost: {"} {
			said := word + pattern
			if strings.HasSuffix(word, "{") {
				said += ": 2}"
			}
			c, err := Parse("x.yaml", one("5/s, "+said))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, w := range c.Warnings {
				if w.Code == "W-METHOD-RARE" {
					got = w.Hint
				}
			}
			if got != want {
				t.Errorf("%s: %q, want %q", said, got, want)
			}
		}
	}
}

func TestOnePatternCoversAnotherWhereThatIsSure(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"/", "GET example.com/a/{id}", true},
		{"/a/", "/a/b", true},
		{"/a/", "/a", false},
		{"/a/", "/ab", false},
		{"GET /a", "GET /a", true},
		{"GET /a", "HEAD /a", true},
		{"HEAD /a", "GET /a", false},
		{"GET /a", "/a", false},
		{"example.com/", "/", false},
		{"EXAMPLE.com./", "example.com/x", true},
		{"/{$}", "/", false},
		{"/{x}/", "/a/b", false}, // it does, and that takes more to prove
	} {
		if got := covers(c.a, c.b); got != c.want {
			t.Errorf("%q covers %q: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestNearWordsAreSuggested(t *testing.T) {
	for wrong, want := range map[string]string{
		"algoritm": "algorithm", "nmae": "name", "MaxWait": "max_wait", "max-wait": "max_wait", "LIMIT": "limit",
		"quotas": "quota", "zzz": "", "": "", strings.Repeat("a", 1000): "",
	} {
		if got := nearest(wrong, names(limitWords)); got != want {
			t.Errorf("nearest to %.20q is %q, want %q", wrong, got, want)
		}
	}
}

// What looks like a secret in the wrong place is never repeated.
func TestValuesInTheWrongPlaceAreNotRepeated(t *testing.T) {
	const secret = "hunter2"
	for _, text := range []string{
		"server: {upstream: \"http://user:hunter2@x/\"}",
		"server: {upstream: \"http://user:hun%zzhunter2@x/\"}",
		"server: {upstream: hunter2}",
		"server: hunter2",
		"password: hunter2",
		"identities: {api_key: {keys: hunter2}}",
		"store: {memory: [hunter2]}",
		"store: {redis: hunter2}",
		"store: {redis: [hunter2]}",
		"store: {redis: \"redis://user:hunter2@host:port\"}",
		"store: {redis: {url: \"rediss://host?hunter2=1\"}}",
		"store: {redis: {url: \"redis://host\", password: hunter2}}",
		"identities: {api_key: {bearer: true, keys: {url: \"https://user:hunter2@host/\"}}}",
		"identities: {api_key: {bearer: true, keys: {url: \"http://host/hunter2\"}}}",
		"identities: {user: {jwt: {keys: \"https://host/#hunter2\"}}}",
		"identities: {user: {jwt: {keys: jwks.json, secret: hunter2}}}",
		"server: {admin: {listen: \"127.0.0.1:9902\", token: hunter2}}",
		"limits: hunter2",
		"limits: [hunter2]",
	} {
		if _, err := Parse("x.yaml", []byte(text)); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
