package httplimit_test

import (
	"net/http"
	"testing"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// A sink is a connection without a network: its header map is used again, as
// that of a server is not, so that only the middleware's own work is seen.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

var bare = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusOK)
})

// guarded is bare behind a limit on a store with the real clock.
func guarded(t testing.TB, text string, headers ...policy.HeaderSet) http.Handler {
	store, err := memstore.New(memstore.Options{MaxKeys: 1000, Sweep: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	p := &policy.Policy{Headers: headers, Limits: []*policy.Limit{perAddress(t, "default", text, comporta.TokenBucket)}}
	engine, err := policy.NewEngine(p, store, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return httplimit.New(engine, httplimit.Options{})(bare)
}

func serve(h http.Handler) func() {
	w := &sink{header: make(http.Header)}
	r := get("/items/7", from("203.0.113.7:51034"))
	return func() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

func BenchmarkServe(b *testing.B) {
	all := []policy.HeaderSet{policy.Triple, policy.Draft11, policy.XRateLimit}
	for _, c := range []struct {
		name string
		h    http.Handler
	}{
		{"bare", bare},
		{"triple", guarded(b, "1000000000/s")},
		{"draft-11", guarded(b, "1000000000/s", policy.Draft11)},
		{"all", guarded(b, "1000000000/s", all...)},
		{"refused", guarded(b, "1/24h")},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			once := serve(c.h)
			once()
			for b.Loop() {
				once()
			}
		})
	}
}

// An allowed request with all its header fields costs at most four allocations:
// the identity, the writer, the text of the fields, and one to spare.
func TestAllocations(t *testing.T) {
	if raced {
		t.Skip("the race detector drops what pools keep")
	}
	all := []policy.HeaderSet{policy.Triple, policy.Draft11, policy.XRateLimit}
	for name, c := range map[string]struct {
		headers []policy.HeaderSet
		most    float64
	}{
		"triple": {nil, 4},
		"all":    {all, 4},
		"none":   {[]policy.HeaderSet{}, 4},
	} {
		once := serve(guarded(t, "1000000000/s", c.headers...))
		if got := testing.AllocsPerRun(1000, once); got > c.most {
			t.Errorf("%s: %v allocations, at most %v", name, got, c.most)
		}
	}
}
