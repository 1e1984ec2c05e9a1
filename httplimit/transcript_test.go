package httplimit_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

var update = flag.Bool("update", false, "rewrite testdata")

// A step is a request at a time, in seconds after the epoch.
type step struct {
	at      float64
	request *http.Request
}

func post(target, contentType string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader("body"))
	r.Header.Set("Content-Type", contentType)
	return r
}

// upstream answers with the header lines that the test names, and a status.
func upstream(status int, lines ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			w.Header().Add(name, value)
		}
		w.WriteHeader(status)
	})
}

// TestTranscripts holds whole answers against testdata; -update rewrites them.
func TestTranscripts(t *testing.T) {
	origin := with("Origin", "https://app.example.com")
	burst := func(name, text string) *policy.Limit { return perAddress(t, name, text, comporta.TokenBucket) }
	everyone := &policy.Limit{Name: "all", Per: identity.Everyone{}, Limit: limitOf(t, "1/10s", comporta.FixedWindow)}
	costly := burst("units", "10/min")
	costly.Cost = []policy.Cost{{Match: patterns(t, "GET /export")[0], Units: 11}}
	quota, err := comporta.ParseQuota("5000/month")
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name    string
		policy  policy.Policy
		handler http.Handler
		steps   []step
	}{
		{"triple", policy.Policy{Limits: []*policy.Limit{burst("a", "2/min")}}, ok, []step{
			{0, get("/")}, {0, get("/")}, {0.1, get("/")}, {0.1, httptest.NewRequest(http.MethodHead, "/", nil)}, {29.999999, get("/")}, {30, get("/")},
		}},
		{"draft-11", policy.Policy{
			Headers: []policy.HeaderSet{policy.Draft11},
			Limits: []*policy.Limit{
				burst("burst", "2/s"), burst("quick", "5/100ms"),
				{Name: "month", Per: &identity.Address{}, Limit: quota}, everyone,
			},
		}, ok, []step{{0, get("/")}, {1, get("/")}}},
		{"x-ratelimit", policy.Policy{
			Headers: []policy.HeaderSet{policy.XRateLimit},
			Limits:  []*policy.Limit{perAddress(t, "a", "1/min", comporta.FixedWindow)},
		}, ok, []step{{0.5, get("/")}, {1.5, get("/")}}},
		{"several", policy.Policy{
			Headers: []policy.HeaderSet{policy.Triple, policy.Draft11, policy.XRateLimit},
			Limits:  []*policy.Limit{perAddress(t, "a", "1/min", comporta.FixedWindow)},
		}, ok, []step{{0.5, get("/")}, {1.5, get("/")}}},
		{"none", policy.Policy{
			Headers: []policy.HeaderSet{}, Limits: []*policy.Limit{perAddress(t, "a", "1/min", comporta.FixedWindow)},
		}, ok, []step{{0, get("/")}, {0, get("/")}}},
		{"never", policy.Policy{Limits: []*policy.Limit{costly}}, ok, []step{{0, get("/export")}, {0, get("/")}}},
		{"hidden", policy.Policy{Limits: []*policy.Limit{burst("mine", "10/min"), everyone}}, ok, []step{{0, get("/")}, {1, get("/")}}},
		{"grpc", policy.Policy{Limits: []*policy.Limit{costly}}, ok, []step{
			{0, post("/svc/Call", "application/grpc+proto")}, {0, get("/export", with("Content-Type", "application/grpc"))},
		}},
		{"cors", policy.Policy{
			CORS:   &policy.CORS{Origins: []string{"https://app.example.com"}},
			Limits: []*policy.Limit{burst("a", "2/min")},
		}, upstream(200, "Access-Control-Allow-Origin: *", "Access-Control-Expose-Headers: X-Total, retry-after"), []step{
			{0, get("/", origin)}, {0, get("/")}, {0, get("/", origin)}, {0, get("/", with("Origin", "https://else.example"))},
			{0, get("/%2f", origin)},
		}},
		{"preflight", policy.Policy{
			CORS:      &policy.CORS{Origins: []string{"*"}},
			Preflight: perAddress(t, "preflight", "1/min", comporta.FixedWindow),
			Limits:    []*policy.Limit{burst("a", "2/min")},
		}, upstream(204, "Access-Control-Allow-Origin: *"), []step{
			{0, preflight()}, {0, preflight()}, {0, get("/", origin)},
		}},
		{"cacheable", policy.Policy{Limits: []*policy.Limit{burst("a", "9/min")}, CORS: &policy.CORS{Origins: []string{"*"}}},
			upstream(200, "Cache-Control: max-age=60, Public", "RateLimit-Remaining: 7"), []step{{0, get("/")}}},
		{"not-modified", policy.Policy{Limits: []*policy.Limit{burst("a", "9/min")}}, upstream(304, "Etag: x"), []step{{0, get("/")}}},
		{"bad-path", policy.Policy{Limits: []*policy.Limit{{
			Name: "a", Match: patterns(t, "/a"), Per: &identity.Address{}, Limit: limitOf(t, "9/min", comporta.FixedWindow),
		}}}, ok, []step{{0, get("/a%2fb")}, {0, get("/a;b")}, {0, get("/b")}, {0, get("/b/../%61")}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit, clock := enforce(t, &c.policy, httplimit.Options{})
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

func preflight() *http.Request {
	r := httptest.NewRequest(http.MethodOptions, "/", nil)
	r.Header.Set("Origin", "https://app.example.com")
	r.Header.Set("Access-Control-Request-Method", "PUT")
	return r
}

// write writes a request in short and its answer in full.
func write(out *bytes.Buffer, s step, r *http.Response) {
	fmt.Fprintf(out, "> %v s: %s %s\n", s.at, s.request.Method, s.request.RequestURI)
	var names []string
	for name := range s.request.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(out, "> %s: %s\n", name, s.request.Header[name][0])
	}
	fmt.Fprintf(out, "%s\n", r.Status)
	var header bytes.Buffer
	_ = r.Header.Write(&header)
	out.WriteString(strings.ReplaceAll(header.String(), "\r\n", "\n"))
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(out, "\n%s----\n", body)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// Every body of ours is JSON with the members of RFC 9457.
func TestProblemsAreJSON(t *testing.T) {
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{
		perAddress(t, "a", "0/s", comporta.TokenBucket), perAddress(t, "b.*-_9", "0/s", comporta.FixedWindow),
	}}, httplimit.Options{})
	h := limit(ok)
	for target, want := range map[string][]string{"/": {"a", "b.*-_9"}, "/%2f": nil} {
		r := ask(h, get(target))
		var problem struct {
			Type, Title, Detail string
			Status              int
			Violated            []string `json:"violated-policies"`
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body, &problem); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if problem.Status != r.StatusCode || problem.Title == "" || problem.Detail == "" || int64(len(body)) != r.ContentLength {
			t.Errorf("%s: %d %s", target, r.StatusCode, body)
		}
		if diff := cmp.Diff(want, problem.Violated); diff != "" {
			t.Errorf("%s violated (-want +got):\n%s", target, diff)
		}
	}
}
