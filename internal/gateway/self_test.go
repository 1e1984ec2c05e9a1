package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/policy"
)

// selfServing serves a policy with self-service at /mine, 3 times an hour.
func selfServing(t *testing.T, upstream, file string, clock *clock) *house {
	t.Helper()
	h := serve(t, upstream, file, clock)
	next := h.InForce()
	var err error
	next.SelfService, err = NewSelfService(&config.SelfService{Path: "/mine", Limit: comporta.Limit{Limit: 3, Window: 3600_000_000_000}},
		next.Engine, h.store, policy.Options{Now: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Replace(next); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestClientsAreToldOfTheirOwnLimits(t *testing.T) {
	const file = `
cors: {origins: ["https://app.example"]}
limits:
  - {name: requests, per: address, limit: 10/min}
  - {name: search, match: /search, per: address, limit: 100/h, algorithm: sliding_log}
  - {name: tenant, per: {header: X-Tenant}, limit: 5/min burst 50}
  - {name: other, per: {header: X-Other}, limit: 5/min}
  - {name: house, per: everyone, limit: 1000/s}
  - {name: month, per: address, quota: 1000/month}
`
	at := newClock()
	up := api(t, hello)
	h := selfServing(t, up, file, at)
	c := client(t)
	for range 4 {
		get(t, c, h.url+"/", "X-Tenant", "a")
	}
	res, text := get(t, c, h.url+"/mine", "X-Tenant", "a", "Origin", "https://app.example")
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/json" || res.Header.Get("Cache-Control") != "no-store" ||
		res.Header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	var got struct{ Limits []map[string]any }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	month := float64(12 * 3600) // noon on the last day of November
	want := []map[string]any{
		{"name": "requests", "algorithm": "token_bucket", "limit": 10.0, "window": 60.0, "remaining": 6.0, "reset": 36.0, "retry": 0.0},
		{"name": "search", "algorithm": "sliding_log", "limit": 100.0, "window": 3600.0, "remaining": 100.0, "reset": 0.0, "retry": 0.0},
		{"name": "tenant", "algorithm": "token_bucket", "limit": 50.0, "window": 600.0, "remaining": 46.0, "reset": 552.0, "retry": 0.0},
		{"name": "month", "algorithm": "fixed_window", "limit": 1000.0, "window": 30 * 86400.0, "remaining": 996.0, "reset": month, "retry": 0.0},
	}
	if diff := cmp.Diff(want, got.Limits); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, secret := range []string{"192.", "127.0.0.1", "other", "house", "line"} {
		if strings.Contains(text, secret) {
			t.Errorf("it tells %s: %s", secret, text)
		}
	}
	if again, _ := get(t, c, h.url+"/", "X-Tenant", "a"); again.Header.Get("RateLimit-Remaining") != "5" {
		t.Errorf("asking was counted: %v", again.Header)
	}
}

func TestAskingIsItselfLimited(t *testing.T) {
	h := selfServing(t, api(t, hello), generous, newClock())
	c := client(t)
	for i, want := range []int{200, 200, 200, 429} {
		if got := status(t, c, h.url+"/mine"); got != want {
			t.Errorf("the answer no. %d: %d, want %d", i+1, got, want)
		}
	}
	if got := status(t, c, h.url+"/"); got != 200 {
		t.Errorf("all else: %d", got)
	}
	if _, metrics := get(t, c, h.metrics+"/metrics"); !strings.Contains(metrics, `comporta_decisions_total{decision="denied",limit="self-service"} 1`) {
		t.Error("it is not counted")
	}
}

func TestOnlyAskingIsAnswered(t *testing.T) {
	h := selfServing(t, api(t, hello), "cors: {origins: [\"*\"]}\n"+generous, newClock())
	c := client(t)
	if res, _ := do(t, c, http.MethodPost, h.url+"/mine", nil); res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") == "" {
		t.Errorf("POST: %d %v", res.StatusCode, res.Header)
	}
	res, _ := do(t, c, http.MethodOptions, h.url+"/mine", nil, "Origin", "https://a.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "x-api-key")
	if res.StatusCode != http.StatusNoContent || res.Header.Get("Access-Control-Allow-Origin") != "*" || res.Header.Get("Access-Control-Allow-Headers") != "*, Authorization" {
		t.Errorf("a preflight: %d %v", res.StatusCode, res.Header)
	}
	if res, text := do(t, c, http.MethodHead, h.url+"/mine", nil); res.StatusCode != 200 || text != "" {
		t.Errorf("HEAD: %d %q", res.StatusCode, text)
	}
}

func TestNoLimitHasTheNameOfSelfService(t *testing.T) {
	h := serve(t, api(t, hello), "limits: [{name: self-service, per: address, limit: 1/s}]", nil)
	_, err := NewSelfService(&config.SelfService{Path: "/mine", Limit: comporta.Limit{Limit: 3, Window: 1_000_000_000}}, h.InForce().Engine, h.store, policy.Options{})
	if err == nil || !strings.Contains(err.Error(), "self-service") {
		t.Error(err)
	}
}
