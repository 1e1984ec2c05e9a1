package httplimit_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
	"github.com/comporta/comporta/storetest"
)

// adrift is middleware whose store never answers, with a local one beside it.
func adrift(t testing.TB, p *policy.Policy) (func(http.Handler) http.Handler, *clock) {
	t.Helper()
	c := &clock{now: epoch}
	local, err := memstore.New(memstore.Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	lost := &storetest.Faults{Script: storetest.Always(storetest.Lost)}
	engine, err := policy.NewEngine(p, lost, policy.Options{Now: c.Now, Local: local})
	if err != nil {
		t.Fatal(err)
	}
	return httplimit.New(engine, httplimit.Options{}), c
}

// Whole answers of each way, against testdata; -update rewrites them.
func TestTranscriptsWithoutTheStore(t *testing.T) {
	origin := with("Origin", "https://app.example.com")
	grpc := func() *http.Request { return post("/svc/Call", "application/grpc+proto") }
	all := []policy.HeaderSet{policy.Triple, policy.Draft11, policy.XRateLimit}
	two := func(second policy.OnError) []*policy.Limit {
		tight := perAddress(t, "b", "1/min", comporta.FixedWindow)
		tight.OnError = second
		return []*policy.Limit{perAddress(t, "a", "5/min", comporta.TokenBucket), tight}
	}
	cors := &policy.CORS{Origins: []string{"https://app.example.com"}}
	for _, c := range []struct {
		name    string
		policy  policy.Policy
		handler http.Handler
		steps   []step
	}{
		{"store-local", policy.Policy{OnError: policy.Local, Limits: two(policy.Default), CORS: cors},
			upstream(200, "Comporta-Store: mine"), []step{{0, get("/", origin)}, {1, get("/", origin)}, {1, grpc()}}},
		{"store-allow", policy.Policy{OnError: policy.Allow, Headers: all, Limits: two(policy.Default)},
			upstream(503, "Retry-After: 7", "RateLimit-Limit: 3"), []step{{0, get("/")}}},
		{"store-mixed", policy.Policy{OnError: policy.Local, Headers: all, Limits: two(policy.Allow)}, ok, []step{{0, get("/")}}},
		{"store-deny", policy.Policy{OnError: policy.Local, Headers: all, Limits: two(policy.Deny), CORS: cors}, ok, []step{
			{0, get("/", origin)}, {0, httptest.NewRequest(http.MethodHead, "/", nil)}, {0, grpc()},
		}},
		{"store-cacheable", policy.Policy{Limits: two(policy.Default)},
			upstream(200, "Cache-Control: public"), []step{{0, get("/")}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit, clock := adrift(t, &c.policy)
			h := limit(c.handler)
			var out bytes.Buffer
			for _, s := range c.steps {
				clock.at(s.at)
				write(&out, s, ask(h, s.request))
			}
			golden(t, c.name+".txt", out.Bytes())
		})
	}
}

// Nobody waits for the answer to a request whose context has ended: it is not
// said which way the store's failure fell.
func TestARequestThatHasEnded(t *testing.T) {
	limit, _ := adrift(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "5/min", comporta.TokenBucket)}})
	ctx, end := context.WithCancel(t.Context())
	end()
	r := ask(limit(ok), get("/").WithContext(ctx))
	if _, told := r.Header["Comporta-Store"]; r.StatusCode != http.StatusServiceUnavailable || told || r.Header.Get("Retry-After") != "1" {
		t.Errorf("%s %v", r.Status, r.Header)
	}
}
