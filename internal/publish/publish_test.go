package publish_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/internal/publish"
	"github.com/comporta/comporta/policy"
)

var update = flag.Bool("update", false, "rewrite testdata")

func numbers(t *testing.T, text string) comporta.Limit {
	t.Helper()
	parse := comporta.ParseLimit
	if strings.HasSuffix(text, "month") {
		parse = comporta.ParseQuota
	}
	l, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func shop(t *testing.T) *policy.Policy {
	t.Helper()
	pattern := func(text string) *policy.Pattern {
		p, err := policy.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	address := new(identity.Address)
	search := numbers(t, "10/min")
	search.Algorithm = comporta.SlidingCounter
	login := numbers(t, "5/15m")
	login.Algorithm, login.Charge = comporta.SlidingLog, comporta.Failures
	zone, err := time.LoadLocation("America/Sao_Paulo")
	if err != nil {
		t.Fatal(err)
	}
	monthly := numbers(t, "1000/month")
	monthly.Calendar.Zone = zone
	return &policy.Policy{
		Headers: []policy.HeaderSet{policy.Triple, policy.Draft11},
		Plans: map[string]policy.Plan{
			"free":       {"requests": numbers(t, "60/min burst 20"), "monthly": numbers(t, "10000/month")},
			"enterprise": {"requests": numbers(t, "unlimited"), "monthly": numbers(t, "unlimited")},
		},
		Limits: []*policy.Limit{
			{Name: "requests", Except: []*policy.Pattern{pattern("GET /health")}, Per: address, Limit: numbers(t, "30/min burst 10"), Cost: []policy.Cost{{Match: pattern("GET /export"), Units: 10}}},
			{Name: "monthly", Except: []*policy.Pattern{pattern("GET /health")}, Per: address, Limit: monthly, WarnAt: 80, WarnHeader: "X-Quota-Warning"},
			{Name: "search", Match: []*policy.Pattern{pattern("GET /search")}, Per: address, Limit: search, Help: "https://api.example.com/limits", Message: "Use filters, and *fewer* pages."},
			{Name: "login", Match: []*policy.Pattern{pattern("POST /login")}, Per: address, Limit: login, Failure: policy.Failure{Status: []int{401, 403}}, Block: 10 * time.Minute},
			{Name: "reports", Match: []*policy.Pattern{pattern("GET /reports"), pattern("GET /reports/{id}")}, Per: address, Limit: numbers(t, "100/24h")},
			{Name: "jobs", Match: []*policy.Pattern{pattern("POST /jobs")}, Per: address, Limit: numbers(t, "1/min"), OnLimit: policy.Demote},
			{Name: "exports", Match: []*policy.Pattern{pattern("GET /export")}, Per: address, OnMissing: policy.Forbid, Limit: numbers(t, "2/min"), Status: 503},
			{Name: "hidden", Per: identity.Everyone{}, Limit: numbers(t, "1000/s")},
			{Name: "trial", Per: address, Limit: numbers(t, "1/s"), Mode: policy.Shadow},
		},
	}
}

var options = publish.Options{
	Title: "Limits of the <Shop> API", SelfService: "/.well-known/rate-limits",
	Advice: "- Use **webhooks** instead of polling.\n- `POST /items/bulk` takes 100 items for one unit.\n\n<script>alert(1)</script>",
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func TestThePage(t *testing.T) {
	got := publish.Markdown(shop(t), options)
	golden(t, "page.md", got)
	for _, secret := range []string{"hidden", "trial"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s is not to be published", secret)
		}
	}
}

func TestTheHTMLPage(t *testing.T) {
	got, err := publish.HTML(shop(t), options)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "page.html", got)
	if strings.Contains(got, "<script") {
		t.Error("the advice brought a script along")
	}
}

func TestTheOverlay(t *testing.T) {
	got, err := publish.Overlay(shop(t), options)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "overlay.json", got)
	var read struct {
		Overlay string
		Actions []struct {
			Target string
			Remove bool
		}
	}
	if err := json.Unmarshal([]byte(got), &read); err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, a := range read.Actions {
		if a.Remove {
			a.Target = "- " + a.Target
		}
		targets = append(targets, a.Target)
	}
	want := []string{"$.paths.*['get','put','post','delete','options','head','patch','trace']"}
	for _, one := range []string{"['/export'].get", "['/search'].get", "['/login'].post", "['/reports'].get", "['/reports/{id}'].get", "['/jobs'].post"} {
		want = append(want, "- $.paths"+one+"['x-rate-limits']", "$.paths"+one)
	}
	want = slices.Insert(want, 1, "- $.paths['/health'].get['x-rate-limits']")
	if diff := cmp.Diff(want, targets); diff != "" {
		t.Error(diff)
	}
}
