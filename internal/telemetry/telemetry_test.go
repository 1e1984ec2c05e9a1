package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// counting is telemetry of an engine with a limit per address, one per everyone
// and one that applies to /rare alone, with what it logs.
func counting(t *testing.T) (*Telemetry, *policy.Engine, *bytes.Buffer) {
	t.Helper()
	store, err := memstore.New(memstore.Options{Now: func() time.Time { return time.UnixMicro(0) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	rare, err := policy.ParsePattern("/rare")
	if err != nil {
		t.Fatal(err)
	}
	limit, err := comporta.ParseLimit("1000/min")
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policy.NewEngine(&policy.Policy{Limits: []*policy.Limit{
		{Name: "each", Per: new(identity.Address), Limit: limit},
		{Name: "all", Per: identity.Everyone{}, Limit: limit},
		{Name: "rare", Match: []*policy.Pattern{rare}, Per: new(identity.Address), Limit: limit},
		{Name: "off", Match: []*policy.Pattern{rare}, Per: new(identity.Address), Limit: limit, Mode: policy.Off},
	}}, store, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := new(bytes.Buffer)
	return New(Options{Engine: engine, Log: slog.New(slog.NewTextHandler(log, nil)), Version: "v1"}), engine, log
}

// verdict is a verdict of the first limits on a client.
func verdict(e *policy.Engine, client string) *policy.Verdict {
	v := new(policy.Verdict)
	for _, l := range e.Policy().Limits[:2] {
		v.Applied = append(v.Applied, policy.Applied{Limit: l, Identity: client})
	}
	return v
}

func TestOneKeyWithMostOfTheTrafficIsToldOfOnce(t *testing.T) {
	tel, engine, log := counting(t)
	for i := range 4 * sketchRound {
		tel.Observe(verdict(engine, fmt.Sprint("address:", i%2))) // half each
	}
	if log.Len() > 0 {
		t.Errorf("half of the traffic is not most: %s", log)
	}
	for i := range 4 * sketchRound {
		client := "address:10.0.0.7"
		if i%5 > 2 {
			client = fmt.Sprint("address:", i)
		}
		tel.Observe(verdict(engine, client))
	}
	text := log.String()
	if strings.Count(text, "W-ONE-KEY") != 1 || !strings.Contains(text, "limit=each") || strings.Contains(text, "10.0.0.7") {
		t.Errorf("want one warning, of the limit each, without the key:\n%s", text)
	}
}

func TestALimitThatNeverAppliesIsToldOfOnce(t *testing.T) {
	tel, engine, log := counting(t)
	for i := range neverAfter {
		if log.Len() > 0 {
			t.Fatalf("after %d: %s", i, log)
		}
		tel.Observe(verdict(engine, fmt.Sprint("address:", i)))
	}
	for range neverAfter {
		tel.Observe(new(policy.Verdict))
	}
	if text := log.String(); strings.Count(text, "W-NEVER-APPLIED") != 1 || !strings.Contains(text, "limit=rare") {
		t.Errorf("want one warning, of the limit rare:\n%s", text)
	}
}

func TestMetricsAreThereBeforeAnythingHappens(t *testing.T) {
	tel, _, _ := counting(t)
	tel.Begin()
	tel.End(Allowed, 0)
	tel.Begin()
	tel.End(Denied, 999)
	tel.UpstreamFailed(TimedOut)
	tel.UpstreamAnswered(3 * time.Millisecond)
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`comporta_build_info{version="v1"} 1`,
		`comporta_requests_total{verdict="malformed"} 0`,
		`comporta_requests_in_flight 0`,
		`comporta_responses_total{class="aborted"} 1`,
		`comporta_responses_total{class="5xx"} 1`,
		`comporta_decisions_total{decision="shadow_denied",limit="rare"} 0`,
		`comporta_upstream_failures_total{reason="timeout"} 1`,
		`comporta_upstream_response_seconds_bucket{le="0.005"} 1`,
		`comporta_warnings_total{code="W-ONE-KEY"} 0`,
		`comporta_store_fallbacks_total{on_error="local"} 0`,
		`comporta_requests_total{verdict="undecided"} 0`,
		`go_goroutines `,
	} {
		if !strings.Contains(string(text), "\n"+line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

func TestTheStoreIsAskedWhenMetricsAre(t *testing.T) {
	_, engine, _ := counting(t)
	stats := StoreStats{Keys: 1, LogBytes: 2, Evictions: 3, Overflows: 4, ClockFaults: 5}
	tel := New(Options{Engine: engine, Store: func() StoreStats { return stats }})
	stats.Keys = 7
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{"comporta_store_keys 7", "comporta_store_log_bytes 2", "comporta_store_evictions_total 3", "comporta_store_overflows_total 4", "comporta_store_clock_faults_total 5"} {
		if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

func TestTheSharedStoreIsAskedWhenMetricsAre(t *testing.T) {
	_, engine, _ := counting(t)
	stats := SharedStats{Up: true, Instances: 3, Calls: 4, Takes: 5, Settlements: 6, Remembered: 7, Replaced: 8, Errors: map[string]int64{"timeout": 9, "READONLY": 10},
		Leases: 11, Leased: 12, Served: 13, Returned: 14, Lost: 15}
	tel := New(Options{Engine: engine, Shared: func() SharedStats { return stats }})
	tell := func(lines ...string) {
		t.Helper()
		w := httptest.NewRecorder()
		tel.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		for _, line := range lines {
			if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
				t.Errorf("the metrics lack %s", line)
			}
		}
	}
	tell("comporta_store_up 1", "comporta_store_instances 3", "comporta_store_calls_total 4", "comporta_store_takes_total 5",
		"comporta_store_settlements_total 6", "comporta_store_remembered_denials_total 7", "comporta_store_replaced_values_total 8",
		`comporta_store_errors_total{cause="timeout"} 9`, `comporta_store_errors_total{cause="READONLY"} 10`,
		"comporta_store_leases_total 11", "comporta_store_leased_units_total 12", "comporta_store_leased_takes_total 13",
		"comporta_store_returned_units_total 14", "comporta_store_lost_units_total 15")
	stats.Up = false
	tell("comporta_store_up 0")
}

// Verdicts without the store are counted by their way, and decisions only where
// somebody decided.
func TestVerdictsWithoutTheStore(t *testing.T) {
	tel, engine, _ := counting(t)
	for _, way := range []policy.OnError{policy.Default, policy.Allow, policy.Local, policy.Deny} {
		v := verdict(engine, "address:10.0.0.7")
		v.Failed, v.Fallen = io.ErrUnexpectedEOF, way
		v.Applied[0].Fallen, v.Applied[1].Fallen = way, policy.Allow
		tel.Observe(v)
	}
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`comporta_store_fallbacks_total{on_error="client_left"} 1`,
		`comporta_store_fallbacks_total{on_error="allow"} 1`,
		`comporta_store_fallbacks_total{on_error="local"} 1`,
		`comporta_store_fallbacks_total{on_error="deny"} 1`,
		`comporta_decisions_total{decision="denied",limit="each"} 1`, // the local one
		`comporta_decisions_total{decision="denied",limit="all"} 0`,
		`comporta_decisions_total{decision="allowed",limit="all"} 0`,
	} {
		if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// What was counted of a limit goes on under its name, and the series of limits that
// are gone, or do no more what they count, end.
func TestCountsFollowThePolicy(t *testing.T) {
	tel, before, _ := counting(t)
	tel.Observe(verdict(before, "address:10.0.0.7"))
	store, err := memstore.New(memstore.Options{Now: func() time.Time { return time.UnixMicro(0) }})
	if err != nil {
		t.Fatal(err)
	}
	after, err := policy.NewEngine(&policy.Policy{
		Limits: []*policy.Limit{{
			Name: "each", Per: new(identity.Address), Limit: comporta.Limit{Limit: 5, Window: time.Minute, Algorithm: comporta.FixedWindow},
			OnLimit: policy.Demote, WarnAt: 80,
		}},
		IPv6Outer: policy.IPv6Outer{Off: true},
	}, store, policy.Options{Before: before})
	if err != nil {
		t.Fatal(err)
	}
	tel.Follow(after)
	tel.Observe(verdict(before, "address:10.0.0.7")) // of a request that was under way
	v := &policy.Verdict{Applied: []policy.Applied{{Limit: after.Policy().Limits[0], Identity: "address:10.0.0.8", Warned: true, Lenient: true}}}
	v.Applied[0].Decision.Limit = 5
	tel.Observe(v)
	tel.InForce("abc")
	tel.InForce("def")
	text := metricsOf(tel)
	for _, line := range []string{
		`comporta_decisions_total{decision="denied",limit="each"} 3`,
		`comporta_demoted_total{limit="each"} 1`,
		`comporta_quota_warnings_total{limit="each"} 1`,
		`comporta_config_info{hash="def"} 1`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	for _, gone := range []string{`limit="all"`, `limit="rare"`, `limit="each.outer"`, `hash="abc"`} {
		if strings.Contains(text, gone) {
			t.Errorf("the metrics still have %s", gone)
		}
	}
	tel.Follow(before)
	if text := metricsOf(tel); strings.Contains(text, "comporta_demoted_total{") || strings.Contains(text, "comporta_quota_warnings_total{") || !strings.Contains(text, `limit="rare"`) {
		t.Error("series of what the limit does no more")
	}
}

func metricsOf(tel *Telemetry) string {
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}
