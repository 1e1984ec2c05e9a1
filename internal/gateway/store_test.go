package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/telemetry"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
	"github.com/comporta/comporta/storetest"
)

// adrift has a gateway's store never answer, and a local one stand in for it.
func adrift(t *testing.T, way policy.OnError, shared telemetry.SharedStats) func(*Options) {
	t.Helper()
	return func(o *Options) {
		now := newClock().now
		local, err := memstore.New(memstore.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		p := o.Engine.Policy()
		p.OnError = way
		lost := &storetest.Faults{Script: storetest.Always(storetest.Lost)}
		if o.Engine, err = policy.NewEngine(p, lost, policy.Options{Now: now, Local: local}); err != nil {
			t.Fatal(err)
		}
		o.Shared = func() telemetry.SharedStats { return shared }
		o.Telemetry = telemetry.New(telemetry.Options{Engine: o.Engine, Log: o.Log, Shared: o.Shared})
	}
}

func TestAGatewayWithoutItsStore(t *testing.T) {
	since := time.Date(2026, 11, 30, 12, 0, 0, 0, time.FixedZone("", 3600))
	down := telemetry.SharedStats{Since: since, Cause: "timeout", Instances: 2}
	const told = "store: down since 2026-11-30T11:00:00Z, on_error "
	for _, c := range []struct {
		way      policy.OnError
		statuses []int  // of two requests
		access   string // of the second
		ready    int
		readyz   string
		metrics  []string
	}{
		{policy.Local, []int{200, 429}, "status=429 verdict=denied limits=a store=local", 200, "ready\n" + told + "local, cause timeout\n",
			[]string{`comporta_store_fallbacks_total{on_error="local"} 2`, `comporta_requests_total{verdict="denied"} 1`}},
		{policy.Allow, []int{200, 200}, "status=200 verdict=allowed store=allow", 200, "ready\n" + told + "allow, cause timeout\n",
			[]string{`comporta_store_fallbacks_total{on_error="allow"} 2`, `comporta_requests_total{verdict="allowed"} 2`}},
		{policy.Deny, []int{503, 503}, "status=503 verdict=undecided store=deny", 200, "ready\n" + told + "deny, cause timeout\n",
			[]string{`comporta_store_fallbacks_total{on_error="deny"} 2`, `comporta_requests_total{verdict="undecided"} 2`}},
	} {
		t.Run(c.way.String(), func(t *testing.T) {
			h := serve(t, api(t, hello), "limits: [{name: a, per: address, limit: 1/min}]", newClock(), adrift(t, c.way, down))
			cl := client(t)
			for _, want := range c.statuses {
				r, _ := get(t, cl, h.url+"/")
				if r.StatusCode != want || r.Header.Get("Comporta-Store") != c.way.String() {
					t.Errorf("%s %v, want %d", r.Status, r.Header, want)
				}
			}
			if r, text := get(t, cl, h.metrics+"/readyz"); r.StatusCode != c.ready || text != c.readyz {
				t.Errorf("%s %q", r.Status, text)
			}
			_, metrics := get(t, cl, h.metrics+"/metrics")
			for _, line := range append(c.metrics, "comporta_store_up 0") {
				if !strings.Contains(metrics, "\n"+line+"\n") {
					t.Errorf("the metrics lack %s", line)
				}
			}
			h.stop()
			<-h.ended
			h.ended <- nil
			if log := h.access.String(); !strings.Contains(withoutNumbers(log), c.access) {
				t.Errorf("the access log lacks %q:\n%s", c.access, log)
			}
			if log := h.log.String(); strings.Contains(log, "injected fault") {
				t.Errorf("the log tells of single requests:\n%s", log)
			}
		})
	}
}

// withoutNumbers is a log without what differs each time.
func withoutNumbers(log string) string {
	var kept []string
	for _, field := range strings.Fields(log) {
		switch name, _, _ := strings.Cut(field, "="); name {
		case "bytes", "us", "upstream_us":
		default:
			kept = append(kept, field)
		}
	}
	return strings.Join(kept, " ")
}

func TestReadinessTellsOfTheStore(t *testing.T) {
	up := telemetry.SharedStats{Up: true, Instances: 5}
	h := serve(t, api(t, hello), "limits: [{name: a, per: address, limit: 1/min}]", nil, adrift(t, policy.Deny, up))
	if r, text := get(t, client(t), h.metrics+"/readyz"); r.StatusCode != http.StatusOK || text != "ready\nstore: up, instances 5\n" {
		t.Errorf("%s %q", r.Status, text)
	}
}

func TestReadinessTellsOfCredentials(t *testing.T) {
	for want, failing := range map[string][]string{
		"ready\n": nil,
		"ready\ncredentials: API keys, keys of tokens cannot be asked for; the log says why\n": {"API keys", "keys of tokens"},
	} {
		h := serve(t, api(t, hello), generous, nil, func(o *Options) { o.Failing = func() []string { return failing } })
		if r, text := get(t, client(t), h.metrics+"/readyz"); r.StatusCode != http.StatusOK || text != want {
			t.Errorf("%s %q, want %q", r.Status, text, want)
		}
	}
}
