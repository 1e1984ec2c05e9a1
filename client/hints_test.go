package client

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const s = time.Second

func TestHints(t *testing.T) {
	for _, c := range []struct {
		name   string
		fields []string
		want   []Hint
	}{
		{"drafts -08 to -11", []string{`RateLimit-Policy: "burst";q=100;w=60,"daily";q=1000;w=86400`, `RateLimit: "burst";r=50;t=30`},
			[]Hint{{"ratelimit", "burst", "", "requests", 100, 50, 30 * s, 60 * s}}},
		{"several policies, on several lines", []string{`RateLimit-Policy: "a";q=10;w=1`, `RateLimit-Policy: "b";q=20;w=2`, `RateLimit: "a";r=1;t=1`, `RateLimit: "b";r=2;t=2`},
			[]Hint{{"ratelimit", "a", "", "requests", 10, 1, s, s}, {"ratelimit", "b", "", "requests", 20, 2, 2 * s, 2 * s}}},
		{"without a policy", []string{`RateLimit: "default";r=50`}, []Hint{{"ratelimit", "default", "", "requests", -1, 50, -1, -1}}},
		{"with a partition and a unit", []string{`RateLimit-Policy: "peruser";q=65535;qu="content-bytes";w=10;pk=:sdfjLJUOUH==:`, `RateLimit: "peruser";r=999;t=3;pk=:dHJpYWwxMjEzMjM=:`},
			[]Hint{{"ratelimit", "peruser", "dHJpYWwxMjEzMjM=", "content-bytes", 65535, 999, 3 * s, 10 * s}}},
		{"the later form", []string{`RateLimit-Policy: "api";q=100;w=60`, `RateLimit-Partition: "api";user_id;method`, `RateLimit: "api";a=99;w=60;c=1;pk=:R0VUH2FsaWNl:`},
			[]Hint{{"ratelimit", "api", "R0VUH2FsaWNl", "requests", 100, 99, 60 * s, 60 * s}}},
		{"both forms at once", []string{`RateLimit: "burst";r=50;t=30;a=50;w=30`}, []Hint{{"ratelimit", "burst", "", "requests", -1, 50, 30 * s, -1}}},
		{"a token for a name", []string{`RateLimit: burst;r=50;t=30`}, []Hint{{"ratelimit", "burst", "", "requests", -1, 50, 30 * s, -1}}},
		{"as its own bad examples have it", []string{`RateLimit-Policy: quota;q=100;w=1`, `RateLimit: quota;t=1`}, nil},
		{"draft -07", []string{`RateLimit: limit=100, remaining=50, reset=5`, `RateLimit-Policy: 100;w=60`},
			[]Hint{{"ratelimit-dictionary", "", "", "requests", 100, 50, 5 * s, -1}}},
		{"drafts -04 to -06", []string{"RateLimit-Limit: 100", "RateLimit-Policy: 100;w=60", "RateLimit-Remaining: 50", "RateLimit-Reset: 30"},
			[]Hint{{"ratelimit", "", "", "requests", 100, 50, 30 * s, 60 * s}}},
		{"drafts to -03", []string{"RateLimit-Limit: 100, 100;w=60", "RateLimit-Remaining: 50", "RateLimit-Reset: 30"},
			[]Hint{{"ratelimit", "", "", "requests", 100, 50, 30 * s, 60 * s}}},
		{"GitHub", []string{"X-RateLimit-Limit: 5000", "X-RateLimit-Remaining: 4999", "X-RateLimit-Used: 1", "X-RateLimit-Reset: 1796127600", "X-RateLimit-Resource: core", "Date: Tue, 01 Dec 2026 12:00:00 GMT"},
			[]Hint{{"x-ratelimit", "core", "", "requests", 5000, 4999, 1200 * s, -1}}},
		{"X, Okta", []string{"x-rate-limit-limit: 900", "x-rate-limit-remaining: 0", "x-rate-limit-reset: 1796126460"},
			[]Hint{{"x-rate-limit", "", "", "requests", 900, 0, 60 * s, -1}}},
		{"milliseconds since 1970", []string{"X-Rate-Limit-Limit: 9", "X-Rate-Limit-Remaining: 8", "X-Rate-Limit-Reset: 1796126460000"},
			[]Hint{{"x-rate-limit", "", "", "requests", 9, 8, 60 * s, -1}}},
		{"an ISO date", []string{"X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 8", "X-RateLimit-Reset: 2026-12-01T12:01:00Z"},
			[]Hint{{"x-ratelimit", "", "", "requests", 9, 8, 60 * s, -1}}},
		{"an HTTP date", []string{"X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 8", "X-RateLimit-Reset: Tue, 01 Dec 2026 12:01:00 GMT"},
			[]Hint{{"x-ratelimit", "", "", "requests", 9, 8, 60 * s, -1}}},
		{"OpenAI", []string{"x-ratelimit-limit-requests: 60", "x-ratelimit-remaining-requests: 59", "x-ratelimit-reset-requests: 1s", "x-ratelimit-limit-tokens: 150000", "x-ratelimit-remaining-tokens: 149984", "x-ratelimit-reset-tokens: 6m30s"},
			[]Hint{{"x-ratelimit", "requests", "", "requests", 60, 59, s, -1}, {"x-ratelimit", "tokens", "", "tokens", 150000, 149984, 390 * s, -1}}},
		{"Anthropic", []string{"anthropic-ratelimit-requests-limit: 50", "anthropic-ratelimit-requests-remaining: 49", "anthropic-ratelimit-requests-reset: 2026-12-01T12:00:02Z", "anthropic-ratelimit-input-tokens-limit: 40000", "anthropic-ratelimit-input-tokens-remaining: 0", "anthropic-ratelimit-input-tokens-reset: 2026-12-01T12:01:00Z"},
			[]Hint{{"anthropic-ratelimit", "input-tokens", "", "input-tokens", 40000, 0, 60 * s, -1}, {"anthropic-ratelimit", "requests", "", "requests", 50, 49, 2 * s, -1}}},
		{"Discord", []string{"X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 4", "X-RateLimit-Reset: 1796126460.123", "X-RateLimit-Reset-After: 0.98", "X-RateLimit-Bucket: abcd1234"},
			[]Hint{{"x-ratelimit", "abcd1234", "", "requests", 5, 4, 980 * time.Millisecond, -1}}},
		{"Reddit", []string{"X-Ratelimit-Used: 2", "X-Ratelimit-Remaining: 598.0", "X-Ratelimit-Reset: 300"},
			[]Hint{{"x-ratelimit", "", "", "requests", -1, 598, 300 * s, -1}}},
		{"Shopify", []string{"X-Shopify-Shop-Api-Call-Limit: 32/40"}, []Hint{{"x-shopify", "", "", "requests", 40, 8, 16 * s, 20 * s}}},
		{"Atlassian", []string{`Beta-RateLimit-Policy: "core";q=100;w=60`, `Beta-RateLimit: "core";r=9;t=30`}, []Hint{{"beta-ratelimit", "core", "", "requests", 100, 9, 30 * s, 60 * s}}},
		{"Kong", []string{"X-RateLimit-Limit-Minute: 5", "X-RateLimit-Remaining-Minute: 4", "RateLimit-Limit: 5", "RateLimit-Remaining: 4", "RateLimit-Reset: 13"},
			[]Hint{{"ratelimit", "", "", "requests", 5, 4, 13 * s, -1}, {"x-ratelimit", "minute", "", "requests", 5, 4, -1, 60 * s}}},
		{"Envoy", []string{`x-ratelimit-limit: 10, 10;w=1;name="per-ip", 1000;w=3600`, "x-ratelimit-remaining: 9", "x-ratelimit-reset: 1"},
			[]Hint{{"x-ratelimit", "", "", "requests", 10, 9, s, s}}},
		{"used, and not what remains", []string{"X-RateLimit-Limit: 5000", "X-RateLimit-Used: 5001", "X-RateLimit-Reset: 5"},
			[]Hint{{"x-ratelimit", "", "", "requests", 5000, 0, 5 * s, -1}}},
		{"an instant that is past", []string{"X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1796126399"},
			[]Hint{{"x-ratelimit", "", "", "requests", 9, 0, 0, -1}}},

		{"from a cache", []string{`RateLimit: "a";r=1;t=1`, "Age: 5"}, nil},
		{"fresh from a cache", []string{`RateLimit: "a";r=1;t=1`, "Age: 0"}, []Hint{{"ratelimit", "a", "", "requests", -1, 1, s, -1}}},
		{"not a number", []string{"X-RateLimit-Limit: many", "X-RateLimit-Remaining: 4"}, nil},
		{"negative", []string{"X-RateLimit-Limit: 5", "X-RateLimit-Remaining: -1"}, nil},
		{"a fraction where there is none", []string{`RateLimit: "a";r=50.0;t=1`}, nil},
		{"negative in a draft", []string{`RateLimit: "a";r=-1;t=1`}, nil},
		{"a bad member alone is ignored", []string{`RateLimit: "a";r=-1;t=1, "b";r=1;t=1`}, []Hint{{"ratelimit", "b", "", "requests", -1, 1, s, -1}}},
		{"a comma too much", []string{`RateLimit: "a";r=1;t=1,`}, nil},
		{"a space before a semicolon", []string{`RateLimit: "a" ;r=1;t=1`}, nil},
		{"huge", []string{"X-RateLimit-Limit: 99999999999999999999", "X-RateLimit-Remaining: 5"}, nil},
		{"a reset in years", []string{"X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 99999999"}, nil},
		{"a reset in a thousand years", []string{"X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 3026-12-01T12:01:00Z"}, nil},
		{"empty", []string{"RateLimit:"}, nil},
		{"an inner list", []string{`RateLimit: ("a";r=1)`}, nil},
		{"too long", []string{"RateLimit: " + strings.Repeat(`"a";r=1;t=1, `, 1000) + `"a";r=1;t=1`}, nil},
		{"other fields", []string{"X-Time-Limit: 5", "Limit: 5"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Hints(respond(c.fields...), received)
			if len(got) == 0 {
				got = nil
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestHintsOfRedirects(t *testing.T) {
	resp := respond(`RateLimit: "a";r=1;t=1`)
	resp.StatusCode = 302
	if got := Hints(resp, received); got != nil {
		t.Error(got)
	}
}

func TestHintsUnderAnySpelling(t *testing.T) {
	resp := &http.Response{Header: http.Header{"RateLimit": {`"a";r=1;t=1`}, "x-ratelimit-remaining": {"2"}}}
	if got := Hints(resp, received); len(got) != 2 {
		t.Error(got)
	}
}

// Most responses say nothing of limits: looking costs next to nothing.
func TestNothingIsCheap(t *testing.T) {
	resp := respond("Content-Type: text/plain", "Date: Tue, 01 Dec 2026 12:00:00 GMT", "Content-Length: 5")
	if n := testing.AllocsPerRun(100, func() { Hints(resp, received); RetryAfter(resp, received) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzHints(f *testing.F) {
	f.Add(`"a";r=1;t=1`, `"a";q=1;w=1`, "100, 100;w=60", "50", "30")
	f.Add(`limit=1, remaining=2, reset=3`, `100;w=60`, "1", "1.5", "1796126460")
	f.Add(`"b";a=1;w=1;pk=:R0VU:`, `x`, "", "99999999999999999999", "6m30s")
	f.Fuzz(func(t *testing.T, state, policy, limit, remaining, reset string) {
		resp := &http.Response{Header: http.Header{
			"Ratelimit": {state}, "Ratelimit-Policy": {policy},
			"X-Ratelimit-Limit": {limit}, "X-Ratelimit-Remaining": {remaining}, "X-Ratelimit-Reset": {reset},
			"X-Ratelimit-Remaining-Tokens": {remaining}, "Ratelimit-Limit": {limit}, "X-Shopify-Shop-Api-Call-Limit": {limit},
		}}
		hints := Hints(resp, received)
		if len(hints) > maxHints {
			t.Fatal(len(hints))
		}
		for _, h := range hints {
			if h.Limit < -1 || h.Remaining < -1 || h.Reset < -1 || h.Window < -1 || h.Reset > farthest || h.Window > farthest || h.Limit > maxUnits || h.Remaining > maxUnits {
				t.Fatalf("%+v", h)
			}
		}
		if again := Hints(resp, received); !slices.Equal(hints, again) {
			t.Fatalf("%v, then %v", hints, again)
		}
	})
}

func BenchmarkHints(b *testing.B) {
	for name, fields := range map[string][]string{
		"none":  {"Content-Type: text/plain", "Date: Tue, 01 Dec 2026 12:00:00 GMT", "Content-Length: 5", "Server: x"},
		"draft": {`RateLimit-Policy: "burst";q=100;w=60`, `RateLimit: "burst";r=50;t=30`, "Date: Tue, 01 Dec 2026 12:00:00 GMT"},
	} {
		b.Run(name, func(b *testing.B) {
			resp := respond(fields...)
			b.ReportAllocs()
			for b.Loop() {
				Hints(resp, received)
			}
		})
	}
}
