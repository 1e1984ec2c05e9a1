package httplimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// A gate is a source that refuses requests as their header Gate says.
type gate map[string]*identity.RequestError

func (g gate) Identity(*identity.Request) (string, bool) { return "", false }
func (g gate) Stage(*identity.Request) identity.Stage    { return identity.Look }
func (g gate) String() string                            { return "gate" }

func (g gate) Prove(_ context.Context, r *identity.Request) (identity.Who, bool, error) {
	for _, said := range r.Header["Gate"] {
		if refused := g[said]; refused != nil {
			return identity.Who{}, false, refused
		}
	}
	return identity.Who{}, false, nil
}

// Whole answers to requests that are refused for themselves, and in the operator's
// words, against testdata; -update rewrites them.
func TestTranscriptsOfRefusals(t *testing.T) {
	grpc := func(edits ...func(*http.Request)) *http.Request {
		r := post("/svc/Call", "application/grpc")
		for _, edit := range edits {
			edit(r)
		}
		return r
	}
	closed := func(name string, edits ...func(*policy.Limit)) *policy.Limit {
		l := perAddress(t, name, "1/min", comporta.FixedWindow)
		for _, edit := range edits {
			edit(l)
		}
		return l
	}
	words := func(l *policy.Limit) {
		l.Message, l.Help = `Größere Seiten helfen: "size=100" <b>.`, "https://api.example.com/help?a=1&b=2"
	}
	status := func(status int) func(*policy.Limit) { return func(l *policy.Limit) { l.Status = status } }
	hide := func(l *policy.Limit) { no := false; l.Show = &no }
	burst := closed("burst", status(403), words, func(l *policy.Limit) { l.Limit = limitOf(t, "1/s", comporta.FixedWindow) })
	twice := closed("minute", status(503), func(l *policy.Limit) { l.Limit = limitOf(t, "2/min", comporta.FixedWindow) })
	denied := policy.Policy{
		Limits: []*policy.Limit{closed("a")},
		Deny:   []policy.Listed{{Network: netip.MustParsePrefix("198.51.100.0/24")}},
		Allow:  []policy.Listed{{Network: netip.MustParsePrefix("203.0.113.0/24")}},
		CORS:   &policy.CORS{Origins: []string{"*"}},
	}
	gates := gate{
		"413": {Status: 413, Detail: "The request's body is too large."},
		"408": {Status: 408, Detail: "The request's body did not come in time."},
		"400": {Status: 400, Detail: "The request's body is no JSON."},
		"503": {Status: 503, Detail: "Keys cannot be looked up."},
		"418": {Status: 418, Detail: "50% tea\n"},
	}
	asks := perAddress(t, "all", "9/min", comporta.FixedWindow)
	missing := func(l *policy.Limit) { l.Per, l.OnMissing = gates, policy.Forbid }
	said := func(text string) func(*http.Request) { return with("Gate", text) }
	for _, c := range []struct {
		name   string
		policy policy.Policy
		steps  []step
	}{
		{"refusal-words", policy.Policy{Limits: []*policy.Limit{closed("a", words)}},
			[]step{{0, get("/")}, {0, get("/")}, {0, grpc()}}},
		{"refusal-503", policy.Policy{Limits: []*policy.Limit{closed("a", status(503))}},
			[]step{{0, get("/")}, {0, get("/")}, {0, grpc()}}},
		{"refusal-403", policy.Policy{Limits: []*policy.Limit{twice, burst}},
			[]step{{0, get("/")}, {0, get("/")}, {1, get("/")}, {1, get("/")}}},
		{"refusal-hidden", policy.Policy{Limits: []*policy.Limit{perAddress(t, "mine", "9/min", comporta.FixedWindow), closed("a", status(503), words, hide)}},
			[]step{{0, get("/")}, {0, get("/")}}},
		{"refused-lists", denied, []step{
			{0, get("/", from("198.51.100.7:1"), with("Origin", "https://app.example.com"))}, {0, grpc(from("198.51.100.7:1"))},
			{0, get("/", from("203.0.113.7:1"))}, {0, get("/", from("203.0.113.7:1"))},
		}},
		{"refused-missing", policy.Policy{Limits: []*policy.Limit{asks, closed("keyed", missing)}},
			[]step{{0, get("/")}, {0, httptest.NewRequest(http.MethodHead, "/", nil)}, {0, grpc()}}},
		{"refused-requests", policy.Policy{Limits: []*policy.Limit{asks, closed("keyed", missing)}}, []step{
			{0, get("/", said("413"))}, {0, get("/", said("408"))}, {0, get("/", said("400"))}, {0, get("/", said("503"))}, {0, get("/", said("418"))},
			{0, grpc(said("413"))}, {0, grpc(said("408"))}, {0, grpc(said("503"))}, {0, grpc(said("418"))}, {0, get("/", said("400"))},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit, clock := enforce(t, &c.policy, httplimit.Options{})
			h := limit(ok)
			var out bytes.Buffer
			for _, s := range c.steps {
				clock.at(s.at)
				write(&out, s, ask(h, s.request))
			}
			golden(t, c.name+".txt", out.Bytes())
		})
	}
}

// Whatever an operator writes, the document is JSON that says it.
func TestWordsAreEscaped(t *testing.T) {
	text := "\"\\\n\x00\x7f</script>\u2028é" + strings.Repeat("%", 10)
	l := perAddress(t, "a", "0/s", comporta.FixedWindow)
	l.Message, l.Help = text, text
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{l}}, httplimit.Options{})
	r := ask(limit(ok), get("/"))
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var problem struct{ Detail, Message, Help string }
	if err := json.Unmarshal(body, &problem); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if problem.Message != text || problem.Help != text || !strings.HasSuffix(problem.Detail, " "+text) || int64(len(body)) != r.ContentLength {
		t.Errorf("%s", body)
	}
	r = ask(limit(ok), post("/", "application/grpc"))
	for _, c := range r.Header.Get("Grpc-Message") {
		if c < ' ' || c > '~' {
			t.Errorf("Grpc-Message: %q", r.Header.Get("Grpc-Message"))
			break
		}
	}
}
