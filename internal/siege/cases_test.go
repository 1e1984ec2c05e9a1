package siege

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta/internal/redistest"
)

const head = "server: {upstream: UPSTREAM}\n"

// Ports, brackets and spellings are no identities; who is trusted is walked past.
func TestCasesOfAddresses(t *testing.T) {
	f := raise(t, head+`
identities: {address: {trusted_proxies: [127.0.0.2/32, 172.16.0.0/12]}}
limits: [{name: one, per: address, limit: 1/h}]
`, map[string]string{}, http.HandlerFunc(api))
	for _, pair := range [][2]string{
		{"203.0.113.7:51034", "203.0.113.7:51035"},
		{"[2001:db8::7]:443", "2001:db8::7"},
		{"2001:db8:1:2::1", "2001:db8:1:2::4"},
		{"::ffff:203.0.113.8", "203.0.113.8"},
		{"fe80::1%eth0", "fe80::1%eth1"},
		{"9.9.9.9, 198.51.100.23, 172.17.0.1", "8.8.8.8, 198.51.100.23, 172.17.0.1"},
		{"garbage, 198.51.100.24", "other, 198.51.100.24"},
		{"172.17.0.5, 172.17.0.1", "172.17.0.5"},
	} {
		first := f.ask("127.0.0.2", "GET /\nX-Forwarded-For: "+pair[0]).status
		if second := f.ask("127.0.0.2", "GET /\nX-Forwarded-For: "+pair[1]).status; first != 200 || second != 429 {
			t.Errorf("%s, then %s: %d, %d", pair[0], pair[1], first, second)
		}
	}
	if got := f.ask("127.0.0.2", "GET /\nX-Forwarded-For: 2001:db8:1:3::1").status; got != 200 {
		t.Errorf("another /64: %d", got)
	}
	// All of IPv4 is not one client.
	if got := f.ask("127.0.0.2", "GET /\nX-Forwarded-For: ::ffff:203.0.113.9").status; got != 200 {
		t.Errorf("another mapped address: %d", got)
	}
}

// Only a listed key is an identity, however it is spelt.
func TestCasesOfKeys(t *testing.T) {
	f := raise(t, head+`
identities: {api_key: {bearer: true, query: key, keys: keys.yaml}}
`+plans+`limits: [{name: five, per: [api_key, address], limit: 5/h}]
`, map[string]string{"keys.yaml": keys}, http.HandlerFunc(api))
	for i, spelt := range []string{"Bearer canary-hobby-0123456789", "bearer  canary-hobby-0123456789", "BEARER canary-hobby-0123456789"} {
		if got := told(f.ask("127.0.0.1", "GET /\nAuthorization: "+spelt)); got != fmt.Sprintf("200 %d/5", 4-i) {
			t.Errorf("%q: %s", spelt, got)
		}
	}
	if got := told(f.ask("127.0.0.1", "GET /?key=canary%2Dhobby-0123456789")); got != "200 1/5" {
		t.Errorf("in the query: %s", got)
	}
	passed := 0
	for i := range 20 {
		spelt := fmt.Sprintf("Bearer random-%d", i)
		if i%4 == 0 {
			spelt = "x Bearer canary-hobby-0123456789"
		}
		if f.ask("127.0.0.1", "GET /\nAuthorization: "+spelt).status == 200 {
			passed++
		}
	}
	if passed != 5 {
		t.Errorf("%d with unknown keys pass, want the 5 of the address", passed)
	}
	if keys := value(f.scrape(), "comporta_store_keys"); keys > 3 {
		t.Errorf("%v keys in the store", keys)
	}
}

// Keys may be known elsewhere: what is asked is their sum, and what is unknown there
// is no identity.
func TestCasesOfKeysElsewhere(t *testing.T) {
	const acme = `{"id":"acme","plan":"pro"}`
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("canary-acme-0123456789")))
	check := func(t *testing.T, store, where string) {
		f := raise(t, head+store+`
identities: {api_key: {header: X-API-Key, keys: `+where+`}}
plans: {pro: {five: 9/min}}
limits: [{name: five, per: [api_key, address], limit: 5/h}]
`, map[string]string{}, http.HandlerFunc(api))
		for _, c := range []struct{ key, want string }{
			{"canary-acme-0123456789", "200 8/9"}, {"canary-acme-0123456789", "200 7/9"}, {"canary-nobody-01234567", "200 4/5"},
		} {
			if got := told(f.ask("127.0.0.1", "GET /\nX-API-Key: "+c.key)); got != c.want {
				t.Errorf("%s: %s, want %s", c.key, got, c.want)
			}
		}
	}
	t.Run("redis", func(t *testing.T) {
		s := redistest.Start(t)
		s.MustDo("HSET", "keys", sum, acme)
		check(t, "store: {redis: "+s.URL()+"}", "{redis: keys, timeout: 5s}")
	})
	t.Run("url", func(t *testing.T) {
		at := newAPI(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("sha256") != sum {
				http.NotFound(w, r)
				return
			}
			fmt.Fprint(w, acme)
		}))
		check(t, "", `{url: "http://`+at+`/find", timeout: 5s}`)
	})
}

// A token that is not verified names nobody.
func TestCasesOfTokens(t *testing.T) {
	m := newMint(t)
	f := raise(t, head+`
identities: {user: {jwt: {keys: jwks.json, issuer: "https://id.example.com", audience: api}}}
limits: [{name: account, per: [user, address], limit: 5/h}]
`, map[string]string{"jwks.json": m.set()}, http.HandlerFunc(api))
	forged := []string{unsigned("7"), newMint(t).token("7", nil), m.token("7", map[string]any{"exp": 1})}
	got := map[int]int{}
	for i := range 20 {
		got[f.ask("127.0.0.20", "GET /\nAuthorization: Bearer "+forged[i%len(forged)]).status]++
	}
	if diff := cmp.Diff(map[int]int{200: 5, 429: 15}, got); diff != "" {
		t.Errorf("the stranger: %s", diff)
	}
	if got := f.passes(6, "127.0.0.21", "GET /\nAuthorization: Bearer "+m.token("7", nil)); got != 5 {
		t.Errorf("the victim's: %d pass, want 5", got)
	}
}

// Overrides, shadow rules, unlimited ones and rules of one match do not hide or
// count each other.
func TestCasesOfRules(t *testing.T) {
	f := raise(t, head+`
identities: {address: {trusted_proxies: [127.0.0.2/32]}}
limits:
  - {name: product, per: {header: X-Product}, limit: 1/h}
  - {name: trial, per: {header: X-Product}, limit: 1/h, mode: shadow}
  - {name: thousand, match: /shop/, per: address, limit: 1000/h}
  - {name: ten, match: /shop/, per: address, limit: 10/h}
overrides:
  - {who: {header: X-Product, value: p1}, limits: {product: 10/h}, through: 2100-01-01, reason: the large one}
  - {who: {address: 203.0.113.9}, limits: {ten: unlimited}, through: 2100-01-01, reason: ours}
`, map[string]string{}, http.HandlerFunc(api))
	for _, c := range []struct {
		from, request string
		want          int
	}{
		{"127.0.0.1", "GET /\nX-Product: p1", 10},
		{"127.0.0.1", "GET /\nX-Product: p2", 1},
		{"127.0.0.22", "GET /shop/a", 10},
		{"127.0.0.2", "GET /shop/a\nX-Forwarded-For: 203.0.113.9", 12},
	} {
		if got := f.passes(12, c.from, c.request); got != c.want {
			t.Errorf("%q: %d pass, want %d", c.request, got, c.want)
		}
	}
}

// What clients make up makes no series.
func TestCasesOfMetrics(t *testing.T) {
	f := raise(t, head+`
limits: [{name: tenants, per: {header: X-Tenant}, limit: 5/h}]
`, map[string]string{}, http.HandlerFunc(api))
	f.ask("127.0.0.1", "GET /\nX-Tenant: a")
	before := series(f.scrape())
	n := 20_000
	if testing.Short() {
		n = 2_000
	}
	f.statuses("127.0.0.1", n, func(i int) string {
		return fmt.Sprintf("FOO%d /path/%d\nX-Tenant: tenant-%d\nUser-Agent: agent-%d", i, i, i, i)
	})
	page := f.scrape()
	if diff := cmp.Diff(before, series(page)); diff != "" {
		t.Error(diff)
	}
	if len(page) > 1<<20 {
		t.Errorf("a scrape is %d bytes", len(page))
	}
}
