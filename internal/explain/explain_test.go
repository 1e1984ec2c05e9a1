package explain_test

import (
	"context"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/internal/explain"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

var update = flag.Bool("update", false, "rewrite testdata")

func engine(t *testing.T) *policy.Engine {
	t.Helper()
	parse := func(text string) comporta.Limit {
		l, err := comporta.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	secret, err := identity.NewSecret(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := identity.NewHeader("X-Tenant", secret)
	if err != nil {
		t.Fatal(err)
	}
	search, err := policy.ParsePattern("GET /search")
	if err != nil {
		t.Fatal(err)
	}
	address := new(identity.Address)
	tenants := parse("100/min")
	tenants.Algorithm = comporta.FixedWindow
	p := &policy.Policy{Address: address, Limits: []*policy.Limit{
		{Name: "requests", Per: address, Limit: parse("30/min burst 3")},
		{Name: "tenants", Per: tenant, Limit: tenants, Cost: []policy.Cost{{Units: 5}}},
		{Name: "search", Per: address, Match: []*policy.Pattern{search}, Limit: parse("1/min")},
		{Name: "trial", Per: address, Limit: parse("1/min"), Mode: policy.Shadow},
		{Name: "free", Per: identity.Everyone{}, Limit: comporta.Limit{Unlimited: true}},
	}}
	p.Deny = []policy.Listed{{Network: network(t, "198.51.100.0/24")}}
	now := func() time.Time { return time.Unix(1_800_057_600, 0) }
	store, err := memstore.New(memstore.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	e, err := policy.NewEngine(p, store, policy.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestExplanations(t *testing.T) {
	e := engine(t)
	var got strings.Builder
	tell := func(text string, o explain.Options) {
		r, err := explain.ReadRequest(e, text, o)
		if err != nil {
			t.Fatal(err)
		}
		x, err := explain.Explain(context.Background(), e, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.WriteText(&got); err != nil {
			t.Fatal(err)
		}
		got.WriteString("----\n")
	}
	tell("GET /search", explain.Options{Headers: []string{"X-Tenant: t-17"}})
	for range 3 {
		r, err := explain.ReadRequest(e, "GET /search", explain.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e.Check(context.Background(), r, new(policy.Verdict))
	}
	tell("GET /search", explain.Options{Headers: []string{"X-Tenant: t-17"}})
	tell("GET /items/7", explain.Options{From: "198.51.100.7"})
	file := filepath.Join(t.TempDir(), "request")
	if err := os.WriteFile(file, []byte("POST /items HTTP/1.1\nHost: api.example.com:8080\nX-Tenant: t-17\n\n{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	tell(file, explain.Options{From: "203.0.113.7"})

	golden := filepath.Join("testdata", "explanations.txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(got.String(), "t-17") {
		t.Error("what the client sent is shown")
	}
}

// TestACredentialThatProvesNothingIsTold: why else would the client be its address?
func TestACredentialThatProvesNothingIsTold(t *testing.T) {
	key, err := identity.NewAPIKey(identity.Places{Header: "X-API-Key"})
	if err != nil {
		t.Fatal(err)
	}
	p := engine(t).Policy()
	p.Limits[0].Per = identity.First{key, p.Address}
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	e, err := policy.NewEngine(p, store, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []bool{true, false} {
		var o explain.Options
		if shown {
			o.Headers = []string{"X-API-Key: unknown-to-all-0123"}
		}
		r, err := explain.ReadRequest(e, "GET /", o)
		if err != nil {
			t.Fatal(err)
		}
		x, err := explain.Explain(context.Background(), e, r)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := x.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(text.String(), "proves nothing (unknown, expired, forged or meant for others): api_key\n"); told != shown || strings.Contains(text.String(), "unknown-to-all") {
			t.Errorf("shown: %v\n%s", shown, &text)
		}
	}
}

// TestWhoRefusesTheUnknown: of all limits it is the one that wants to know who asks.
func TestWhoRefusesTheUnknown(t *testing.T) {
	p := engine(t).Policy()
	p.Limits[1].OnMissing = policy.Forbid
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	e, err := policy.NewEngine(p, store, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := explain.ReadRequest(e, "GET /", explain.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := explain.Explain(context.Background(), e, r)
	if err != nil {
		t.Fatal(err)
	}
	if l := x.Limits[1]; x.Answer.Status != 401 || l.Applies || !strings.HasSuffix(l.Why, "is refused") {
		t.Errorf("%+v: %+v", x.Answer, l)
	}
}

func TestWhatIsNoRequestIsSaidSo(t *testing.T) {
	e := engine(t)
	for text, want := range map[string]string{
		"no-such-file":                        "is neither a request line",
		"GET /a;b%2f":                         "the gateway answers 400",
		"GET /a HTTP/9.1 xx":                  "this is no HTTP request",
		"GET /a\nbad header":                  "this is no HTTP request",
		"POST /a\nContent-Length: 9\n\nshort": "shorter than its Content-Length",
	} {
		if _, err := explain.ReadRequest(e, text, explain.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want one with %q", text, err, want)
		}
	}
	if _, err := explain.ReadRequest(e, "GET /", explain.Options{From: "localhost"}); err == nil {
		t.Error("localhost passes for an address")
	}
}

func network(t *testing.T, text string) netip.Prefix {
	t.Helper()
	p, err := identity.ParsePrefix(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
