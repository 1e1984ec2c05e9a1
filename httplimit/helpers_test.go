package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// epoch is where the tests' timelines begin: the start of a minute, an hour and
// a day in UTC.
var epoch = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// clock is told the time.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// at moves the clock to so many seconds after the epoch.
func (c *clock) at(seconds float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = epoch.Add(time.Duration(seconds * float64(time.Second)))
}

func limitOf(t testing.TB, text string, algorithm comporta.Algorithm) comporta.Limit {
	t.Helper()
	l, err := comporta.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	l.Algorithm = algorithm
	return l
}

// perAddress is a limit of each client address.
func perAddress(t testing.TB, name, text string, algorithm comporta.Algorithm) *policy.Limit {
	t.Helper()
	return &policy.Limit{Name: name, Per: &identity.Address{}, Limit: limitOf(t, text, algorithm)}
}

func patterns(t testing.TB, texts ...string) []*policy.Pattern {
	t.Helper()
	var ps []*policy.Pattern
	for _, text := range texts {
		p, err := policy.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	return ps
}

// enforce is middleware over a new memory store on a clock at the epoch.
func enforce(t testing.TB, p *policy.Policy, o httplimit.Options) (func(http.Handler) http.Handler, *clock) {
	t.Helper()
	c := &clock{now: epoch}
	store, err := memstore.New(memstore.Options{MaxKeys: 10_000, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	engine, err := policy.NewEngine(p, store, policy.Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return httplimit.New(engine, o), c
}

// ok answers with a word.
var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write([]byte("ok\n"))
})

// get is a request from an address of documentation.
func get(target string, edits ...func(*http.Request)) *http.Request {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func with(header string, lines ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[http.CanonicalHeaderKey(header)] = lines }
}

func from(address string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = address }
}

func ask(h http.Handler, r *http.Request) *http.Response {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Result()
}

func trusted(t testing.TB, prefix int, ranges ...string) *identity.Address {
	t.Helper()
	o := identity.AddressOptions{IPv6Prefix: prefix}
	for _, r := range ranges {
		o.Trusted = append(o.Trusted, netip.MustParsePrefix(r))
	}
	a, err := identity.NewAddress(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
