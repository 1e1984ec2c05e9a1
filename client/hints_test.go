package client

import (
	"fmt"
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
		{"both forms, and they differ", []string{`RateLimit: "burst";r=50;t=30;a=40;w=30`}, nil},
		{"both forms, with one time", []string{`RateLimit: "burst";r=50;a=50;w=30`}, []Hint{{"ratelimit", "burst", "", "requests", -1, 50, 30 * s, -1}}},
		{"parameters that are comments", []string{`RateLimit: "burst";r=50;t=30;w="soon";acme-burst=7.5;x`}, []Hint{{"ratelimit", "burst", "", "requests", -1, 50, 30 * s, -1}}},
		{"a policy for each partition", []string{`RateLimit-Policy: "u";q=100;w=60;pk=:YQ==:,"u";q=65535;qu=content-bytes;w=10;pk=:Yg==:`, `RateLimit: "u";r=9;t=3;pk=:Yg==:, "u";r=8;t=4;pk=:YQ==:, "u";r=7`},
			[]Hint{{"ratelimit", "u", "Yg==", "content-bytes", 65535, 9, 3 * s, 10 * s}, {"ratelimit", "u", "YQ==", "requests", 100, 8, 4 * s, 60 * s}, {"ratelimit", "u", "", "requests", 100, 7, -1, 60 * s}}},
		{"a malformed policy alone is ignored", []string{`RateLimit-Policy: "a";q=10;w=1.5, "b";q=20;w=2, "c";q=-1, "d";w=1, "e";q=5;w=0, "f";q=1;qu=7, ("g";q=1)`, `RateLimit: "a";r=1, "b";r=2, "c";r=3, "d";r=4, "e";r=5, "f";r=6, "g";r=7`},
			[]Hint{{"ratelimit", "a", "", "requests", -1, 1, -1, -1}, {"ratelimit", "b", "", "requests", 20, 2, -1, 2 * s}, {"ratelimit", "c", "", "requests", -1, 3, -1, -1}, {"ratelimit", "d", "", "requests", -1, 4, -1, -1},
				{"ratelimit", "e", "", "requests", -1, 5, -1, -1}, {"ratelimit", "f", "", "requests", -1, 6, -1, -1}, {"ratelimit", "g", "", "requests", -1, 7, -1, -1}}},
		{"malformed policies and a good state", []string{`RateLimit-Policy: "a" ;q=1`, `RateLimit: "a";r=1`}, []Hint{{"ratelimit", "a", "", "requests", -1, 1, -1, -1}}},
		{"the policies of another generation", []string{`RateLimit-Policy: 10;w=1, "a";q=3;w=1`, `RateLimit: "a";r=1;t=1`}, []Hint{{"ratelimit", "a", "", "requests", 3, 1, s, s}}},
		{"the draft's own name for requests", []string{`RateLimit-Policy: "a";q=3;qu="request"`, `RateLimit: "a";r=1`}, []Hint{{"ratelimit", "a", "", "requests", 3, 1, -1, -1}}},
		{"the draft's examples", []string{`RateLimit-Policy: "burst";q=100;w=60,"daily";q=1000;w=86400`, `RateLimit: "default";r=999;pk=:dHJpYWwxMjEzMjM=:`},
			[]Hint{{"ratelimit", "default", "dHJpYWwxMjEzMjM=", "requests", -1, 999, -1, -1}}},
		{"-07 without a limit", []string{`RateLimit: remaining=50, reset=5`}, []Hint{{"ratelimit-dictionary", "", "", "requests", -1, 50, 5 * s, -1}}},
		{"-07, and no limit", []string{`RateLimit: limit=999999999999999, remaining=999999999999998, reset=5`},
			[]Hint{{"ratelimit-dictionary", "", "", "requests", 999999999999999, 999999999999998, 5 * s, -1}}},
		{"-07, negative", []string{`RateLimit: limit=100, remaining=-1, reset=5`}, nil},
		{"-07, a negative limit", []string{`RateLimit: limit=-2, remaining=1, reset=5`}, nil},
		{"-07, malformed", []string{`RateLimit: limit=100, remaining="50", reset=5`}, nil},
		{"-07, of polli-00's spelling", []string{`RateLimit: limit=100, remaining=50, reset=5`, `RateLimit-Policy: 10;window=1, 100;window=60`},
			[]Hint{{"ratelimit-dictionary", "", "", "requests", 100, 50, 5 * s, 60 * s}}},
		{"a token for a name", []string{`RateLimit: burst;r=50;t=30`}, []Hint{{"ratelimit", "burst", "", "requests", -1, 50, 30 * s, -1}}},
		{"as its own bad examples have it", []string{`RateLimit-Policy: quota;q=100;w=1`, `RateLimit: quota;t=1`}, nil},
		{"draft -07", []string{`RateLimit: limit=100, remaining=50, reset=5`, `RateLimit-Policy: 100;w=60`},
			[]Hint{{"ratelimit-dictionary", "", "", "requests", 100, 50, 5 * s, 60 * s}}},
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
			[]Hint{{"x-ratelimit", "per-ip", "", "requests", 10, 9, s, s}}},
		{"Envoy, another policy", []string{`x-ratelimit-limit: 1000, 10;w=1;name="per-ip", 1000;w=3600`, "x-ratelimit-remaining: 7", "x-ratelimit-reset: 9"},
			[]Hint{{"x-ratelimit", "", "", "requests", 1000, 7, 9 * s, 3600 * s}}},
		{"an old Envoy", []string{`x-ratelimit-limit: 10, 10;window=1`, "x-ratelimit-remaining: 9", "x-ratelimit-reset: 1"},
			[]Hint{{"x-ratelimit", "", "", "requests", 10, 9, s, s}}},
		{"Nuvemshop: milliseconds, taken for seconds", []string{"x-rate-limit-limit: 40", "x-rate-limit-remaining: 39", "x-rate-limit-reset: 1000"},
			[]Hint{{"x-rate-limit", "", "", "requests", 40, 39, 1000 * s, -1}}},
		{"Gravitee", []string{"X-Rate-Limit-Limit: 10", "X-Rate-Limit-Remaining: 9", "X-Rate-Limit-Reset: 1679587256800", "Date: Thu, 23 Mar 2023 16:00:55 GMT"},
			[]Hint{{"x-rate-limit", "", "", "requests", 10, 9, 1800 * time.Millisecond, -1}}},
		{"Laravel, Flask-Limiter", []string{"RateLimit-Limit: 60", "RateLimit-Remaining: 59", "RateLimit-Reset: 1796126460"},
			[]Hint{{"ratelimit", "", "", "requests", 60, 59, 60 * s, -1}}},
		{"Atlassian's other fields", []string{"X-RateLimit-Limit: 350", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2026-12-01T12:01Z"},
			[]Hint{{"x-ratelimit", "", "", "requests", 350, 0, 60 * s, -1}}},
		{"Stripe tells in words alone", []string{"Stripe-Rate-Limited-Reason: global-rate", "Stripe-Should-Retry: true"}, nil},
		{"unit and window in names", []string{"x-ratelimit-limit-tokens-minute: 60000", "x-ratelimit-remaining-tokens-minute: 5", "x-ratelimit-limit-req-minute: 30", "x-ratelimit-remaining-req-minute: 29"},
			[]Hint{{"x-ratelimit", "req-minute", "", "requests", 30, 29, -1, 60 * s}, {"x-ratelimit", "tokens-minute", "", "tokens", 60000, 5, -1, 60 * s}}},
		{"windows in other words", []string{"x-ratelimit-limit-per-minute: 30", "x-ratelimit-remaining-per-minute: 29", "x-ratelimit-remaining-tokens-per-day: 7"},
			[]Hint{{"x-ratelimit", "per-minute", "", "requests", 30, 29, -1, 60 * s}, {"x-ratelimit", "tokens-per-day", "", "tokens", -1, 7, -1, 86400 * s}}},
		{"a name too long", []string{"X-RateLimit-Remaining: 4", "X-RateLimit-Resource: " + strings.Repeat("x", 101)}, []Hint{{"x-ratelimit", "", "", "requests", -1, 4, -1, -1}}},
		{"Shopify's bucket, full", []string{"X-Shopify-Shop-Api-Call-Limit: 400/400"}, []Hint{{"x-shopify", "", "", "requests", 400, 0, 50 * time.Millisecond, 20 * s}}},
		{"Shopify's bucket, empty", []string{"X-Shopify-Shop-Api-Call-Limit: 0/40"}, []Hint{{"x-shopify", "", "", "requests", 40, 40, 0, 20 * s}}},
		{"Shopify, none", []string{"X-Shopify-Shop-Api-Call-Limit: 40"}, nil},
		{"used, and not what remains", []string{"X-RateLimit-Limit: 5000", "X-RateLimit-Used: 5001", "X-RateLimit-Reset: 5"},
			[]Hint{{"x-ratelimit", "", "", "requests", 5000, 0, 5 * s, -1}}},
		{"an instant that is past", []string{"X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1796126399"},
			[]Hint{{"x-ratelimit", "", "", "requests", 9, 0, 0, -1}}},

		{"from a cache", []string{`RateLimit: "a";r=1;t=1`, "Age: 5"}, nil},
		{"fresh from a cache", []string{`RateLimit: "a";r=1;t=1`, "Age: 0"}, []Hint{{"ratelimit", "a", "", "requests", -1, 1, s, -1}}},
		{"an Age that is none", []string{`RateLimit: "a";r=1;t=1`, "Age: old"}, []Hint{{"ratelimit", "a", "", "requests", -1, 1, s, -1}}},
		{"two Ages", []string{`RateLimit: "a";r=1;t=1`, "Age: 3, 0"}, nil},
		{"the same name twice", []string{`RateLimit: "a";r=5;t=1, "a";r=3;t=9, "a";r=4;t=2`}, []Hint{{"ratelimit", "a", "", "requests", -1, 3, 9 * s, -1}}},
		{"two values of one field", []string{"X-RateLimit-Limit: 10", "X-RateLimit-Remaining: 5", "X-RateLimit-Remaining: 3"}, nil},
		{"a partition that is no Byte Sequence", []string{`RateLimit: "a";r=1;t=1;pk="alice", "b";r=1;t=1`}, []Hint{{"ratelimit", "b", "", "requests", -1, 1, s, -1}}},
		{"a Byte Sequence without its padding", []string{`RateLimit: "a";r=1;t=1;pk=:YQ:`}, nil},
		{"a time that is no Integer", []string{`RateLimit: "a";r=1;t=1.5, "b";r=1;t="1", "c";a=1;w=-1, "d";a=1.0;w=1, "e";r="1"`}, nil},
		{"the most digits of an Integer", []string{`RateLimit: "a";r=999999999999999;t=1`}, []Hint{{"ratelimit", "a", "", "requests", -1, 999999999999999, s, -1}}},
		{"no limit beside a limit", []string{`RateLimit-Policy: "free";q=999999999999999, "slow";q=90;w=60`, `RateLimit: "free";r=999999999999999;t=0, "slow";r=89;t=30`},
			[]Hint{{"ratelimit", "free", "", "requests", 999999999999999, 999999999999999, 0, -1}, {"ratelimit", "slow", "", "requests", 90, 89, 30 * s, 60 * s}}},
		{"more digits", []string{`RateLimit: "a";r=9999999999999999;t=1`}, nil},
		{"a time in years", []string{`RateLimit: "a";r=1;t=1000000000`}, nil},
		{"a negative reset", []string{"X-RateLimit-Remaining: 5", "X-RateLimit-Reset: -5"}, nil},
		{"a reset that overflows", []string{"X-RateLimit-Remaining: 5", "X-RateLimit-Reset-After: 99999999999999999999.5"}, nil},
		{"microseconds since 1970", []string{"X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 1796126460000000"}, nil},
		{"a duration of centuries", []string{"X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 2540400h"}, nil},
		{"a reset alone", []string{"X-RateLimit-Reset: 5"}, nil},
		{"not ASCII", []string{`RateLimit: "ä";r=1;t=1`}, nil},
		{"not a number", []string{"X-RateLimit-Limit: many", "X-RateLimit-Remaining: 4"}, nil},
		{"negative", []string{"X-RateLimit-Limit: 5", "X-RateLimit-Remaining: -1"}, nil},
		{"a fraction where there is none", []string{`RateLimit: "a";r=50.0;t=1`}, nil},
		{"negative in a draft", []string{`RateLimit: "a";r=-1;t=1`}, nil},
		{"a bad member alone is ignored", []string{`RateLimit: "a";r=-1;t=1, "b";r=1;t=1`}, []Hint{{"ratelimit", "b", "", "requests", -1, 1, s, -1}}},
		{"a comma too much", []string{`RateLimit: "a";r=1;t=1,`}, nil},
		{"a space before a semicolon", []string{`RateLimit: "a" ;r=1;t=1`}, nil},
		{"huge", []string{"X-RateLimit-Limit: 99999999999999999999", "X-RateLimit-Remaining: 5"}, nil},
		{"huge, what remains", []string{"X-RateLimit-Remaining: 99999999999999999999"}, nil},
		{"a reset in a year", []string{"X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 30000000"}, []Hint{{"x-ratelimit", "", "", "requests", -1, 5, 30_000_000 * s, -1}}},
		{"a reset in no time", []string{"X-RateLimit-Remaining: 5", "X-RateLimit-Reset-After: 0.0000001"}, []Hint{{"x-ratelimit", "", "", "requests", -1, 5, time.Microsecond, -1}}},
		{"a reset in years", []string{"X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 99999999"}, nil},
		{"a reset in a thousand years", []string{"X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 3026-12-01T12:01:00Z"}, nil},
		{"empty", []string{"RateLimit:"}, nil},
		// Each made a parser of structured fields panic, or refuse what is legal.
		{"a Date cut short", []string{"RateLimit: @", `RateLimit-Policy: "a";q=1;x=@`, "X-RateLimit-Limit: 10, 10;w=@"}, []Hint{{"x-ratelimit", "", "", "requests", 10, -1, -1, -1}}},
		{"a Display String", []string{`RateLimit: "a";r=1;x=%"b"`, `RateLimit-Policy: "a";q=2;x=%"%c3%bc"`}, []Hint{{"ratelimit", "a", "", "requests", 2, 1, -1, -1}}},
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
	for _, name := range []string{"RateLimit", "Ratelimit", "ratelimit", "RATELIMIT"} {
		h := http.Header{name: {`"a";r=1;t=1`}, name + "-Policy": {`"a";q=2;w=3`}}
		want := []Hint{{"ratelimit", "a", "", "requests", 2, 1, s, 3 * s}}
		if d := cmp.Diff(want, Hints(&http.Response{Header: h}, received)); d != "" {
			t.Error(name, d)
		}
	}
	both := &http.Response{Header: http.Header{"RateLimit": {`"a";r=1;t=1`}, "Ratelimit": {`"b";r=2;t=2`}}}
	for range 20 {
		if got := Hints(both, received); len(got) != 2 || got[0].Policy != "a" || got[1].Policy != "b" {
			t.Fatal(got)
		}
	}
}

// However much a server says, it is read in bounded time and space.
func TestHintsAreBounded(t *testing.T) {
	var members []string
	for i := range 300 {
		members = append(members, fmt.Sprintf(`"p%d";r=1;t=1`, i))
	}
	if got := Hints(respond("RateLimit: "+strings.Join(members, ",")), received); len(got) != maxHints || got[63].Policy != "p63" {
		t.Error(len(got))
	}
	many := &http.Response{Header: http.Header{}}
	for i := range 10_000 {
		many.Header[fmt.Sprintf("X-Ratelimit-Remaining-%d", i)] = []string{"1"}
	}
	if got := Hints(many, received); got != nil {
		t.Error(len(got))
	}
	long := &http.Response{Header: http.Header{
		"Ratelimit":             slices.Repeat([]string{`"a";r=1;t=1`}, 100_000),
		"X-Ratelimit-Remaining": {"1"},
		"X-Ratelimit-Remaining-" + strings.Repeat("x", 999): {"1"},
	}}
	if got := Hints(long, received); len(got) != 1 || got[0].Dialect != "x-ratelimit" {
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
	f.Add(`"a";r=1;t=1, "a";r=0;t=9;pk=:YQ==:`, `"a";q=3;w=1;qu=bytes, 10;w=1`, `10, 10;w=1;name="x"`, "0", "2026-12-01T12:01Z")
	f.Add(`"a";r=999999999999999;t=999999999999999`, `"a";q=1;w=999999999999999`, "40/40", "1.0000000001", "9223372036.9")
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
