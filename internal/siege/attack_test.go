package siege

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// besieged has something of everything that an attacker may try.
const besieged = `
server: {listen: "127.0.0.1:0", metrics: "127.0.0.1:0", upstream: UPSTREAM, admin: {listen: "127.0.0.1:0", token_file: admin.token}}
store: {memory: {max_keys: 20000, save: counts.state}}
identities:
  api_key: {header: X-API-Key, query: key, keys: keys.yaml}
  user: {jwt: {keys: jwks.json, issuer: "https://id.example.com", audience: api}}
  address: {trusted_proxies: [127.0.0.2/32]}
` + plans + `limits:
  - {name: requests, per: [api_key, user, address], limit: 60/min burst 20}
  - {name: address, per: address, limit: 30000/min burst 30000}
  - {name: login-address, match: POST /login, per: address, limit: 20/10m, algorithm: sliding_log, charge: attempts}
  - name: login-account
    match: POST /login
    per: {all: [{claimed: username}, address]}
    limit: 5/15m
    algorithm: sliding_log
    charge: failures
    failure: {status: [401]}
  - name: account-anywhere
    match: POST /login
    per: {claimed: username}
    limit: 20/15m
    algorithm: sliding_log
    charge: failures
    failure: {status: [401]}
    on_limit: mark
  - {name: tenants, per: {header: X-Tenant}, limit: 1000/min, mode: shadow}
`

// adminToken is what operators show.
const adminToken = "canary-admin-token-0123456789"

// canaries are what nobody but who sent it and who listed it may ever see.
var canaries = []string{"canary-", "tell-nobody"}

// An attacker's hour, in a minute: all at once, and a victim who goes on as ever.
func TestAnAttackersHour(t *testing.T) {
	count := 100_000
	if testing.Short() {
		count = 5_000
	}
	m := newMint(t)
	var marked sync.Map
	f := raise(t, besieged, map[string]string{
		"keys.yaml": keys, "jwks.json": m.set(), "admin.token": adminToken,
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if mark := r.Header.Get("Comporta-Mark"); mark != "" {
			marked.Store(mark, true)
		}
		api(w, r)
	}))
	login := func(name, password string) string {
		return "POST /login\nContent-Type: application/x-www-form-urlencoded\n\nusername=" + name + "&password=" + password
	}
	via := func(address, request string) string {
		first, rest, _ := strings.Cut(request, "\n")
		return strings.TrimSuffix(first+"\nX-Forwarded-For: "+address+"\n"+rest, "\n")
	}
	home := via("203.0.113.77", login("canary-victim", "right-tell-nobody"))
	token := "GET /\nAuthorization: Bearer " + m.token("the-victim", nil)
	f.ask("127.0.0.2", home)
	before := series(f.scrape())

	var attack sync.WaitGroup
	storm := func(what, from string, n int, request func(i int) string) {
		attack.Go(func() { t.Logf("%s: %v", what, f.statuses(from, n, request)) })
	}
	// However one client names itself, it has one budget: 20, and one more each second.
	alone := func(what, from string, n int, request func(i int) string) {
		attack.Go(func() {
			began := time.Now()
			got := f.statuses(from, n, request)
			t.Logf("%s: %v", what, got)
			if most := 21 + int(time.Since(began)/time.Second); got[http.StatusOK] > most {
				t.Errorf("%s: %d pass, at most %d are to", what, got[http.StatusOK], most)
			}
		})
	}
	alone("random API keys", "127.0.0.10", count, func(i int) string {
		return fmt.Sprintf("GET /\nX-API-Key: canary-random-%d-%d", i, rand.Uint64())
	})
	alone("addresses of one /64", "127.0.0.2", count, func(i int) string {
		return via(fmt.Sprintf("2001:db8:7:7:%x:%x:%x:%x", rand.Uint32()&0xffff, i>>16, i&0xffff, rand.Uint32()&0xffff), "GET /")
	})
	storm("many /64s of one /48", "127.0.0.2", count/4, func(i int) string {
		return via(fmt.Sprintf("2001:db8:8:%x::1", i&0xffff), "GET /")
	})
	alone("forged X-Forwarded-For", "127.0.0.11", count/20, func(i int) string {
		return via(fmt.Sprintf("198.51.%d.%d", i>>8&255, i&255), "GET /")
	})
	forged := []string{unsigned("the-victim"), newMint(t).token("the-victim", nil), m.token("the-victim", map[string]any{"exp": 1}), m.token("the-victim", map[string]any{"iss": "x"})}
	alone("forged tokens", "127.0.0.12", count/20, func(i int) string {
		return "GET /\nAuthorization: Bearer " + forged[i%len(forged)]
	})
	large := strings.Repeat("canary-large ", 80_000)
	attack.Go(func() { // each ends its connection: nobody waits for the rest of it
		for range 40 {
			got := f.ask("127.0.0.13", "POST /login\nContent-Type: application/json\n\n{\"username\":\""+large+"\"}")
			if got.status != http.StatusRequestEntityTooLarge && got.status != http.StatusTooManyRequests {
				t.Errorf("a login of 1 MB: %d", got.status)
			}
		}
	})
	malformed := []string{"{", `{"username":"canary-a","username":"b"}`, `{"username":["canary-a"]}`, "\x00\xff", `{"username":"\ud800"}`}
	storm("malformed logins", "127.0.0.14", count/20, func(i int) string {
		return "POST /login\nContent-Type: application/json\n\n" + malformed[i%len(malformed)]
	})
	tricks := []string{"GET //admin/..;/x", "GET /%2e%2e/", "GET /a%2fb", "GET /\nX-API-Key: a\nX-API-Key: b", "GET /?key=a&key=b", "GET /\nX-Tenant: " + strings.Repeat("canary-t", 1000)}
	storm("tricks", "127.0.0.15", count/20, func(i int) string { return tricks[i%len(tricks)] })
	alone("tenants", "127.0.0.16", count/4, func(i int) string { return fmt.Sprintf("GET /\nX-Tenant: canary-tenant-%d", i) })
	attack.Go(func() {
		got := f.statuses("127.0.0.17", 600, func(i int) string { return login(fmt.Sprint("canary-account-", i%100), "no") })
		t.Logf("locking 100 accounts out: %v", got)
		if got[http.StatusUnauthorized] > 20 { // attempts of an address
			t.Errorf("%d guesses at 100 accounts reach the API, at most 20 are to", got[http.StatusUnauthorized])
		}
	})
	storm("10,000 addresses on one account", "127.0.0.2", count/10, func(i int) string {
		return via(fmt.Sprintf("192.%d.%d.%d", 1+i>>16, i>>8&255, i&255), login("canary-victim", "no"))
	})

	// The victim goes on meanwhile, from home.
	over := make(chan struct{})
	go func() { attack.Wait(); close(over) }()
	asked := 0
	for done := false; !done && asked < 19; asked++ { // 20 attempts in ten minutes are the victim's own
		if got := f.ask("127.0.0.2", home); got.status != http.StatusOK {
			t.Errorf("the victim's login %d: %d %s", asked, got.status, got.body)
		}
		if asked < 15 {
			if got := f.ask("127.0.0.18", token); got.status != http.StatusOK {
				t.Errorf("the victim's request %d: %d %s", asked, got.status, got.body)
			}
		}
	}
	<-over
	// Now that all addresses have guessed, the victim is told apart by a mark, not refused.
	if got := f.ask("127.0.0.2", via("203.0.113.78", login("canary-victim", "right"))); got.status != http.StatusOK {
		t.Errorf("the victim from elsewhere: %d", got.status)
	}
	told := false
	marked.Range(func(_, _ any) bool { told = true; return false })
	if !told {
		t.Error("no guess was marked for the upstream")
	}

	page := f.scrape()
	if keys := value(page, "comporta_store_keys"); keys < 0 || keys > 20_000 {
		t.Errorf("%v keys in the store, at most 20,000 are to be", keys)
	}
	if memory := value(page, "process_resident_memory_bytes"); memory > 400<<20 {
		t.Errorf("%v MiB of memory", memory/(1<<20))
	}
	if len(page) > 1<<20 {
		t.Errorf("a scrape is %d bytes", len(page))
	}
	added := slices.DeleteFunc(series(page), func(s string) bool { return slices.Contains(before, s) })
	if len(added) > 0 {
		t.Errorf("series that the attack made: %q", added)
	}
	own := f.ask("127.0.0.18", "GET /.well-known/rate-limits\nAuthorization: Bearer "+m.token("the-victim", nil))
	seen := f.operators(adminToken, "/v1/top", "/v1/top?by=denied", "/v1/top?limit=tenants&by=denied", "/v1/top?limit=account-anywhere", "/v1/identities/api_key:acme", "/v1/overrides")
	f.End()
	f.keepsSecrets(t, append(seen, page, own.body)...)
}

// keepsSecrets looks for canaries in all that a gateway wrote.
func (f *fort) keepsSecrets(t *testing.T, others ...string) {
	t.Helper()
	wrote := append([]string{f.Out.String(), f.Err.String()}, others...)
	files, err := os.ReadDir(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if slices.Contains([]string{"keys.yaml", "admin.token"}, file.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(f.dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		wrote = append(wrote, string(data))
	}
	for _, text := range wrote {
		for _, canary := range canaries {
			if i := strings.Index(text, canary); i >= 0 {
				t.Errorf("%q is told: …%s…", canary, text[max(0, i-100):min(len(text), i+60)])
			}
		}
	}
	if f.Err.String() == "" {
		t.Error("the gateway said nothing at all")
	}
}
