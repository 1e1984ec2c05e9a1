package identity_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/comporta/comporta/identity"
)

// everywhere is a source that looks everywhere.
var everywhere = identity.Places{Header: "x-api-key", Query: "key", Cookie: "key", Bearer: true}

func apiKey(t testing.TB, p identity.Places, keys ...identity.Key) *identity.APIKey {
	t.Helper()
	a, err := identity.NewAPIKey(p)
	if err != nil {
		t.Fatal(err)
	}
	a.Use(keysOf(t, keys...))
	return a
}

func keysOf(t testing.TB, keys ...identity.Key) *identity.Keys {
	t.Helper()
	k, err := identity.NewKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func keyOf(id, plan, secret string) identity.Key {
	return identity.Key{ID: id, Plan: plan, Sum: sha256.Sum256([]byte(secret))}
}

// showing is a request with header lines, "Name: value", and a query.
func showing(query string, lines ...string) *identity.Request {
	r := &identity.Request{Query: query, Header: map[string][]string{}, Peer: netip.MustParseAddr("203.0.113.9")}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header[name] = append(r.Header[name], value)
	}
	return r
}

func TestWhereKeysAreFound(t *testing.T) {
	a := apiKey(t, everywhere, keyOf("acme", "pro", "k"), keyOf("plus", "", "a+b/c="), keyOf("other", "", "o"))
	const nothing, unproved = "nothing", "unproved"
	for _, c := range []struct {
		query string
		lines []string
		want  string
	}{
		{"", nil, nothing},
		{"", []string{"X-Api-Key: k"}, "acme"},
		{"", []string{"X-Api-Key:  \tk "}, "acme"},
		{"", []string{"X-Api-Key: K"}, unproved},
		{"", []string{"X-Api-Key: "}, nothing},
		{"", []string{"X-Api-Key: k", "X-Api-Key: k", "X-Api-Key: "}, "acme"},
		{"", []string{"X-Api-Key: k", "X-Api-Key: o"}, unproved},
		{"", []string{"X-Api-Key: k, k"}, unproved},
		{"", []string{"X-Api-Key: " + strings.Repeat("k", identity.MaxKey+1)}, unproved},

		{"", []string{"Authorization: Bearer k"}, "acme"},
		{"", []string{"Authorization: bearer  k"}, "acme"},
		{"", []string{"Authorization:   BEARER   k  "}, "acme"},
		{"", []string{"Authorization: Bearer a+b/c="}, "plus"},
		{"", []string{"Authorization: Bearer k", "Authorization: bearer  k"}, "acme"},
		{"", []string{"Authorization: Bearer k", "Authorization: Bearer o"}, unproved},
		{"", []string{"Authorization: Bearer k", "Authorization: Basic eDp5"}, unproved},
		{"", []string{"Authorization: Basic eDp5", "Authorization: Bearer k"}, unproved},
		{"", []string{"Authorization: Bearer k o"}, unproved},
		{"", []string{"Authorization: Bearer k, Bearer o"}, unproved},
		{"", []string{"Authorization: x Bearer k"}, nothing},
		{"", []string{"Authorization: Basic k"}, nothing},
		{"", []string{"Authorization: Bearerk"}, nothing},
		{"", []string{"Authorization: Bearer\tk"}, nothing},
		{"", []string{"Authorization: Bearer "}, nothing},
		{"", []string{"Authorization: k"}, nothing},

		{"", []string{"Cookie: key=k"}, "acme"},
		{"", []string{"Cookie: a=1; key=k; b=2"}, "acme"},
		{"", []string{"Cookie: a=1;key=\"k\""}, "acme"},
		{"", []string{"Cookie: a=1", "Cookie: key=k"}, "acme"},
		{"", []string{"Cookie: key=a+b/c="}, "plus"},
		{"", []string{"Cookie: key=k; key=k"}, "acme"},
		{"", []string{"Cookie: key=k; key=o"}, unproved},
		{"", []string{"Cookie: Key=k; xkey=k; keyx=k"}, nothing},
		{"", []string{"Cookie: key"}, nothing},
		{"", []string{"Cookie: key=%6B"}, unproved},

		{"key=k", nil, "acme"},
		{"a=1&key=k&b=2", nil, "acme"},
		{"k%65y=%6B", nil, "acme"},
		{"key=a%2Bb%2Fc%3D", nil, "plus"},
		{"key=a%2bb/c=", nil, "plus"},
		{"key=a+b/c=", nil, unproved},
		{"key=k&key=%6b&key=", nil, "acme"},
		{"key=k&key=o", nil, unproved},
		{"key=k&k%65y=o", nil, unproved},
		{"key=%zz", nil, unproved},
		{"key=k&key=%z", nil, unproved},
		{"key=k;key=k", nil, unproved},
		{"key=k%00", nil, unproved},
		{"Key=k&%zz=k&xkey=k&key", nil, nothing},

		{"key=k", []string{"X-Api-Key: k", "Authorization: Bearer k", "Cookie: key=k"}, "acme"},
		{"key=o", []string{"X-Api-Key: k"}, unproved},
		{"", []string{"X-Api-Key: k", "Cookie: key=o"}, unproved},
		{"key=%", []string{"X-Api-Key: k"}, unproved},
	} {
		who, shown, err := a.Prove(t.Context(), showing(c.query, c.lines...))
		got := strings.TrimPrefix(who.ID, "api_key:")
		switch {
		case errors.Is(err, identity.ErrUnproved) && !shown && who == (identity.Who{}):
			got = unproved
		case err == nil && !shown && who == (identity.Who{}):
			got = nothing
		case err != nil || who.ID != "api_key:"+got:
			t.Errorf("%q %q: %v, %v, %v", c.query, c.lines, who, shown, err)
		}
		if got != c.want {
			t.Errorf("%q %q: %s, want %s", c.query, c.lines, got, c.want)
		}
		id, ok := a.Identity(showing(c.query, c.lines...))
		if ok != shown || id != who.ID {
			t.Errorf("%q %q: the identity is %q, %v", c.query, c.lines, id, ok)
		}
	}
}

func TestOnlyNamedPlacesAreRead(t *testing.T) {
	r := showing("key=k", "X-Api-Key: k", "Authorization: Bearer k", "Cookie: key=k")
	for _, p := range []identity.Places{{Header: "X-Other"}, {Query: "other"}, {Cookie: "other"}} {
		a := apiKey(t, p, keyOf("acme", "", "k"))
		if who, shown, err := a.Prove(t.Context(), r); shown || err != nil {
			t.Errorf("%+v: %v, %v, %v", p, who, shown, err)
		}
	}
	// A header may hold the key in the place of a scheme.
	a := apiKey(t, identity.Places{Header: "Authorization"}, keyOf("acme", "", "k"))
	if _, shown, _ := a.Prove(t.Context(), showing("", "Authorization: k")); !shown {
		t.Error("a key that is alone in Authorization is not read")
	}
}

func TestPlacesThatAreNone(t *testing.T) {
	for _, p := range []identity.Places{
		{}, {Header: "X Api"}, {Header: "Host"}, {Header: "cookie"}, {Header: "authorization", Bearer: true}, {Cookie: "a b"}, {Cookie: "a=b"},
	} {
		if _, err := identity.NewAPIKey(p); err == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}

// Limit per key, else per address: what is not a key by all accounts is counted by
// the address, and all spellings that are accepted are one client.
func TestOnlyAVerifiedKeyIsAnIdentity(t *testing.T) {
	a := apiKey(t, identity.Places{Bearer: true}, keyOf("acme", "", "k"))
	per := identity.First{a, new(identity.Address)}
	seen := map[string]int{}
	for i := range 20 {
		id, _ := per.Identity(showing("", fmt.Sprintf("Authorization: Bearer random-%d", i)))
		seen[id]++
	}
	for _, spelt := range []string{"Bearer k", "bearer  k", "x Bearer k"} {
		for range 20 {
			id, _ := per.Identity(showing("", "Authorization: "+spelt))
			seen[id]++
		}
	}
	if len(seen) != 2 || seen["address:203.0.113.9"] != 40 || seen["api_key:acme"] != 40 {
		t.Errorf("%v", seen)
	}
}

func TestKeysExpire(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	k := keyOf("acme", "pro", "k")
	k.Expires = now.Add(time.Hour)
	a := apiKey(t, everywhere, k)
	a.Clock(func() time.Time { return now })
	r := showing("", "X-Api-Key: k")
	now = k.Expires.Add(-time.Nanosecond)
	if who, shown, err := a.Prove(t.Context(), r); !shown || err != nil || who != (identity.Who{ID: "api_key:acme", Plan: "pro"}) {
		t.Errorf("before: %v, %v, %v", who, shown, err)
	}
	now = k.Expires
	if who, shown, err := a.Prove(t.Context(), r); shown || !errors.Is(err, identity.ErrUnproved) {
		t.Errorf("from then on: %v, %v, %v", who, shown, err)
	}
}

func TestWithoutKeysNobodyIsProved(t *testing.T) {
	a, err := identity.NewAPIKey(everywhere)
	if err != nil {
		t.Fatal(err)
	}
	r := showing("", "X-Api-Key: k")
	if _, shown, err := a.Prove(t.Context(), r); shown || !errors.Is(err, identity.ErrUnproved) || a.Stage(r) != identity.Look {
		t.Errorf("%v, %v", shown, err)
	}
}

func TestErrorsShowNoKey(t *testing.T) {
	a := apiKey(t, everywhere)
	for _, r := range []*identity.Request{
		showing("", "X-Api-Key: s3cret"), showing("", "X-Api-Key: s3cret", "X-Api-Key: s3cret2"),
		showing("key=s3cret%zz"), showing("", "Authorization: Bearer s3cret s3cret"),
	} {
		if _, _, err := a.Prove(t.Context(), r); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v", err)
		}
	}
	for _, k := range []string{"", "s3cret s3cret", "s3cret\x00", strings.Repeat("s3cret", 300)} {
		if _, err := identity.SumKey(k); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v", err)
		}
	}
	if sum, err := identity.SumKey("k"); err != nil || sum != sha256.Sum256([]byte("k")) {
		t.Errorf("%v", err)
	}
}

func TestClientsNamedByID(t *testing.T) {
	a := apiKey(t, everywhere, keyOf("acme", "pro", "k"))
	for id, plan := range map[string]string{"acme": "pro", "nobody yet": "", "org:7": ""} {
		if who, err := a.For(id); err != nil || who != (identity.Who{ID: "api_key:" + id, Plan: plan}) {
			t.Errorf("%s: %v, %v", id, who, err)
		}
	}
	if _, err := a.For(""); err == nil {
		t.Error("no id, and yet a client")
	}
	if a.String() != "api_key" || a.TellsPlans() {
		t.Error(a, a.TellsPlans())
	}
}

// Keys are changed under traffic: each answer is that of one table.
func TestKeysAreReplacedUnderTraffic(t *testing.T) {
	tables := []*identity.Keys{keysOf(t, keyOf("acme", "a", "k"), keyOf("gone", "a", "g")), keysOf(t, keyOf("acme", "b", "k"))}
	a := apiKey(t, everywhere)
	a.Use(tables[0])
	var traffic sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		traffic.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r := showing("", "X-Api-Key: k")
				if who, shown, err := a.Prove(t.Context(), r); !shown || err != nil || who.Plan != "a" && who.Plan != "b" {
					t.Errorf("%v, %v, %v", who, shown, err)
				}
				if who, _, err := a.Prove(t.Context(), showing("", "X-Api-Key: g")); err != nil && !errors.Is(err, identity.ErrUnproved) {
					t.Errorf("%v, %v", who, err)
				}
				a.Stage(r)
				if who, err := a.For("acme"); err != nil || who.Plan == "" {
					t.Errorf("%v, %v", who, err)
				}
			}
		})
	}
	for i := range 2000 {
		a.Use(tables[i%2])
		if who, _, _ := a.Prove(t.Context(), showing("", "X-Api-Key: k")); who.Plan != []string{"a", "b"}[i%2] {
			t.Fatalf("after Use: %v", who)
		}
	}
	close(stop)
	traffic.Wait()
}

// Whatever is sent: what is found is what a server behind us would find, or nothing.
func FuzzKeysOfARequest(f *testing.F) {
	for _, seed := range [][4]string{
		{"k", "Bearer k", "key=k", "key=k"}, {"", "bearer  k", "a=1; key=\"k\"", "k%65y=%6B&key=%"}, {"k", "x Bearer k", "key=o; key", "key=k;key=o"},
		{"\t", "Bearer \x00", ";;=;", "&=&;%"}, {"k,k", "Bearer", "key==", "key=a+b"}, {"", "", "key=  k", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, header, authorization, cookie, query string) {
		a, err := identity.NewAPIKey(everywhere)
		if err != nil {
			t.Fatal(err)
		}
		var looked *[32]byte
		a.Use(ringFunc(func(sum [32]byte) (identity.Key, bool, error) {
			looked = &sum
			return identity.Key{ID: "acme"}, true, nil
		}))
		r := &identity.Request{Query: query, Header: http.Header{"X-Api-Key": {header}, "Authorization": {authorization}, "Cookie": {cookie}}}
		_, shown, err := a.Prove(t.Context(), r)
		if shown != (looked != nil) || shown && err != nil || err != nil && !errors.Is(err, identity.ErrUnproved) {
			t.Fatalf("%v, %v", shown, err)
		}
		if looked == nil {
			return
		}
		var seen []string
		see := func(key string) {
			if key != "" && sha256.Sum256([]byte(key)) != *looked {
				seen = append(seen, key)
			}
		}
		see(strings.Trim(header, " \t"))
		if values, err := url.ParseQuery(query); err == nil {
			for _, key := range values["key"] {
				see(key)
			}
		}
		for _, c := range (&http.Request{Header: http.Header{"Cookie": {cookie}}}).CookiesNamed("key") {
			see(c.Value)
		}
		if token, is := strings.CutPrefix(authorization, "Bearer "); is {
			see(strings.Trim(token, " \t"))
		}
		if len(seen) > 0 {
			t.Errorf("a server would also find %q", seen)
		}
	})
}

// ringFunc is a keyring of a function.
type ringFunc func(sum [32]byte) (identity.Key, bool, error)

func (r ringFunc) Find(_ context.Context, sum [32]byte) (identity.Key, bool, error) { return r(sum) }
func (r ringFunc) Known([32]byte) bool                                              { return false }

func BenchmarkAPIKey(b *testing.B) {
	keys := make([]identity.Key, 10_000)
	for i := range keys {
		keys[i] = keyOf(fmt.Sprintf("client-%d", i), "pro", fmt.Sprintf("sk_live_0123456789012345678901234567890123456789%d", i))
	}
	a := apiKey(b, everywhere, keys...)
	r := showing("page=2&q=tea", "Authorization: Bearer sk_live_01234567890123456789012345678901234567897777", "Cookie: session=1234; theme=dark")
	b.ReportAllocs()
	for b.Loop() {
		if _, shown, _ := a.Prove(b.Context(), r); !shown {
			b.Fatal("not shown")
		}
	}
}
