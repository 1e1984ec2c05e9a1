package policy_test

import (
	"context"
	"net/netip"
	"sync"
	"testing"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// checker is an engine over a real store on the wall clock, and a request to ask it with.
func checker(t testing.TB, l ...*policy.Limit) func(peer netip.Addr) {
	t.Helper()
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	p := limits(l...)
	e, err := policy.NewEngine(&p, store, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var r identity.Request
	var v policy.Verdict
	header := map[string][]string{"X-Tenant": {"acme"}}
	return func(peer netip.Addr) {
		r = identity.Request{Method: "GET", Host: "example.com", Path: "/v1/reports/7", Header: header, Peer: peer}
		e.Check(context.Background(), &r, &v)
		if v.Failed != nil || len(v.Applied) == 0 {
			t.Errorf("%+v", v)
		}
	}
}

func TestACheckAllocatesIdentitiesAlone(t *testing.T) {
	if raced {
		t.Skip("the race detector drops what pools keep")
	}
	tenant, err := identity.NewHeader("X-Tenant", secret(t))
	if err != nil {
		t.Fatal(err)
	}
	v4, v6 := netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("2001:db8::7")
	one := limit(t, "one", "100/min")
	other := limit(t, "other", "1000/h", match(t, "/v1/", "not /v1/health"), cost(pattern(t, "GET /v1/reports/{id}"), 5))
	for _, c := range []struct {
		name   string
		peer   netip.Addr
		limits []*policy.Limit
		want   float64
	}{
		{"one limit", v4, []*policy.Limit{one}, 1},
		{"several limits", v4, []*policy.Limit{one, other, limit(t, "log", "100/min as sliding_log")}, 1},
		{"IPv6 and its outer", v6, []*policy.Limit{one, other}, 2},
		{"a header too", v4, []*policy.Limit{one, limit(t, "tenant", "9/s", per(tenant))}, 2},
		{"everyone", v4, []*policy.Limit{limit(t, "all", "9/s", everyone)}, 0},
	} {
		check := checker(t, c.limits...)
		if n := testing.AllocsPerRun(2000, func() { check(c.peer) }); n > c.want {
			t.Errorf("%s: %v allocations, not %v", c.name, n, c.want)
		}
	}
}

func TestChecksAreSafeTogether(t *testing.T) {
	h := open(t, limits(limit(t, "one", "100/min as fixed_window"), limit(t, "post", "50/min as fixed_window", match(t, "POST /{rest...}"))))
	var all sync.WaitGroup
	var mu sync.Mutex
	posts, gets := 0, 0
	for i := range 8 {
		all.Go(func() {
			if i%2 == 0 {
				n := h.passes(40, "POST", "/a", peer)
				mu.Lock()
				posts += n
				mu.Unlock()
				return
			}
			n := h.passes(40, "GET", "/a", peer)
			mu.Lock()
			gets += n
			mu.Unlock()
		})
	}
	all.Wait()
	if posts > 50 || posts+gets != 100 {
		t.Errorf("%d posts of 50 and %d requests of 100 pass", posts, posts+gets)
	}
}

func BenchmarkCheck(b *testing.B) {
	v4 := netip.MustParseAddr("203.0.113.7")
	for name, all := range map[string][]*policy.Limit{
		"one":   {limit(b, "one", "100/min")},
		"three": {limit(b, "one", "100/min"), limit(b, "two", "1000/h", match(b, "/v1/")), limit(b, "all", "9000/s", everyone)},
	} {
		b.Run(name, func(b *testing.B) {
			check := checker(b, all...)
			b.ReportAllocs()
			for b.Loop() {
				check(v4)
			}
		})
	}
}

// BenchmarkStages is what it costs to have a key, a user or an address, with plans.
func BenchmarkStages(b *testing.B) {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	town := newTown(b, secret(b))
	first := per(identity.First{town.key, town.user, socket})
	p := limits(limit(b, "requests", "100000/s", first), limit(b, "search", "90000/s", first, match(b, "/a/")), limit(b, "address", "100000/s"))
	p.Plans = map[string]policy.Plan{"pro": {"requests": numbers(b, "200000/s")}}
	e, err := policy.NewEngine(&p, store, policy.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, headers := range map[string][]string{"address": nil, "key": {"X-Key", "acme of pro"}, "user": {"X-User", "acme of pro"}} {
		b.Run(name, func(b *testing.B) {
			r := request("GET", "/a/1", peer, headers...)
			ask := *r
			var v policy.Verdict
			b.ReportAllocs()
			for b.Loop() {
				*r = ask
				e.Check(b.Context(), r, &v)
			}
		})
	}
}
