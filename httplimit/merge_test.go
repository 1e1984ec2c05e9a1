package httplimit_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/policy"
)

// What the handler says of its own limits stays, unless ours are the tighter.
// Ours have 1 of 3 left, 20 s to the next and 20 s to spread one over.
func TestTheirFields(t *testing.T) {
	all := []policy.HeaderSet{policy.Triple, policy.Draft11, policy.XRateLimit}
	triple, draft, x := all[:1], all[1:2], all[2:]
	for _, c := range []struct {
		name    string
		headers []policy.HeaderSet
		theirs  []string
		want    []string
	}{
		{"none of theirs", triple, nil, []string{"Ratelimit-Limit: 3", "Ratelimit-Remaining: 1", "Ratelimit-Reset: 20"}},
		{"theirs are tighter", triple,
			[]string{"RateLimit-Limit: 5, 5;w=60", "RateLimit-Remaining: 0", "RateLimit-Reset: 7"},
			[]string{"Ratelimit-Limit: 5, 5;w=60", "Ratelimit-Remaining: 0", "Ratelimit-Reset: 7"}},
		{"ours are tighter", triple,
			[]string{"RateLimit-Limit: 500", "RateLimit-Remaining: 499", "RateLimit-Reset: 900"},
			[]string{"Ratelimit-Limit: 3", "Ratelimit-Remaining: 1", "Ratelimit-Reset: 20"}},
		{"as much left, ours is later", triple,
			[]string{"RateLimit-Limit: 5", "RateLimit-Remaining: 1", "RateLimit-Reset: 19"},
			[]string{"Ratelimit-Limit: 3", "Ratelimit-Remaining: 1", "Ratelimit-Reset: 20"}},
		{"as much left, as late", triple,
			[]string{"RateLimit-Limit: 5", "RateLimit-Remaining: 1", "RateLimit-Reset: 20"},
			[]string{"Ratelimit-Limit: 5", "Ratelimit-Remaining: 1", "Ratelimit-Reset: 20"}},
		{"incomplete", triple,
			[]string{"RateLimit-Remaining: 0"},
			[]string{"Ratelimit-Limit: 3", "Ratelimit-Remaining: 1", "Ratelimit-Reset: 20"}},
		{"two lines", triple,
			[]string{"RateLimit-Limit: 5", "RateLimit-Remaining: 0", "RateLimit-Remaining: 0", "RateLimit-Reset: 20"},
			[]string{"Ratelimit-Limit: 3", "Ratelimit-Remaining: 1", "Ratelimit-Reset: 20"}},
		{"unreadable", triple,
			[]string{"RateLimit-Limit: many", "RateLimit-Remaining: 0", "RateLimit-Reset: soon"},
			[]string{"Ratelimit-Limit: 3", "Ratelimit-Remaining: 1", "Ratelimit-Reset: 20"}},
		{"a family of which we send nothing", triple,
			[]string{"X-RateLimit-Remaining: 4000"},
			[]string{"Ratelimit-Limit: 3", "Ratelimit-Remaining: 1", "Ratelimit-Reset: 20", "X-Ratelimit-Remaining: 4000"}},
		{"epoch seconds, ours is later", x,
			[]string{"X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 1795996819"},
			[]string{"X-Ratelimit-Limit: 3", "X-Ratelimit-Remaining: 1", "X-Ratelimit-Reset: 1795996820"}},
		{"seconds from now, theirs is later", x,
			[]string{"X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 1.0", "X-RateLimit-Reset: 21"},
			[]string{"X-Ratelimit-Limit: 60", "X-Ratelimit-Remaining: 1.0", "X-Ratelimit-Reset: 21"}},
		{"lists are joined", draft,
			[]string{`RateLimit-Policy: "up\", a";q=9;qu="x;y";w=60`, `RateLimit: "up\", a";r=8;t=5`},
			[]string{`Ratelimit-Policy: "up\", a";q=9;qu="x;y";w=60, "ours";q=3;w=60`, `Ratelimit: "up\", a";r=8;t=5, "ours";r=1;t=20`}},
		{"lists on several lines", draft,
			[]string{`RateLimit: "a";r=8;t=5`, `RateLimit: "b";r=7;t=5`},
			[]string{`Ratelimit-Policy: "ours";q=3;w=60`, `Ratelimit: "a";r=8;t=5, "b";r=7;t=5, "ours";r=1;t=20`}},
		{"one name, theirs is tighter", draft,
			[]string{`RateLimit-Policy: "ours";q=9`, `RateLimit: "ours";r=0`},
			[]string{`Ratelimit-Policy: "ours";q=9`, `Ratelimit: "ours";r=0`}},
		{"one name, ours is tighter", draft,
			[]string{`RateLimit-Policy: "ours";q=9, "b";q=9`, `RateLimit: "ours";r=2;t=30, "b";r=2`},
			[]string{`Ratelimit-Policy: "b";q=9, "ours";q=3;w=60`, `Ratelimit: "b";r=2, "ours";r=1;t=20`}},
		{"one name, as tight", draft,
			[]string{`RateLimit-Policy: "ours";q=9`, `RateLimit: "ours";r=1;t=20`},
			[]string{`Ratelimit-Policy: "ours";q=9`, `Ratelimit: "ours";r=1;t=20`}},
		{"an earlier draft", draft,
			[]string{`RateLimit-Policy: 100;w=60`, `RateLimit: limit=100, remaining=50, reset=5`},
			[]string{`Ratelimit-Policy: "ours";q=3;w=60`, `Ratelimit: "ours";r=1;t=20`}},
		{"Retry-After stays", nil, []string{"Retry-After: 3"}, []string{"Retry-After: 3"}},
		{"the longest of several", []policy.HeaderSet{}, []string{"Retry-After: 3", "Retry-After: Mon, 30 Nov 2026 00:00:04 GMT", "Retry-After: x"},
			[]string{"Retry-After: Mon, 30 Nov 2026 00:00:04 GMT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit, _ := enforce(t, &policy.Policy{
				Headers: c.headers, Limits: []*policy.Limit{perAddress(t, "ours", "3/min", comporta.TokenBucket)},
			}, httplimit.Options{})
			ask(limit(ok), get("/"))
			got := lines(ask(limit(upstream(503, c.theirs...)), get("/")).Header)
			want := c.want
			if c.headers == nil {
				want = slices.Concat([]string{"Ratelimit-Limit: 3", "Ratelimit-Remaining: 1", "Ratelimit-Reset: 20"}, want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A handler's Retry-After that comes before ours would let anything pass is made ours.
func TestTheirRetryAfterIsNotTooSoon(t *testing.T) {
	for theirs, want := range map[string]string{
		"3":                             "30",
		"29":                            "30",
		"31":                            "31",
		"Mon, 30 Nov 2026 00:00:29 GMT": "30",
		"Mon, 30 Nov 2026 00:00:30 GMT": "Mon, 30 Nov 2026 00:00:30 GMT",
		"soon":                          "30",
		"99999999999999999999":          "30",
	} {
		limit, _ := enforce(t, &policy.Policy{
			Headers: []policy.HeaderSet{}, Limits: []*policy.Limit{perAddress(t, "ours", "2/min burst 1", comporta.TokenBucket)},
		}, httplimit.Options{})
		r := ask(limit(upstream(429, "Retry-After: "+theirs)), get("/"))
		if diff := cmp.Diff([]string{want}, r.Header["Retry-After"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", theirs, diff)
		}
	}
}

func TestWhatASharedCacheMayKeep(t *testing.T) {
	for control, bare := range map[string]bool{
		"":                           false,
		"private, max-age=60":        false,
		`private="x, public"`:        false,
		"publicity":                  false,
		"PUBLIC":                     true,
		"max-age=0, s-maxage=10":     true,
		`no-cache="x" , S-MaxAge=10`: true,
	} {
		limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "3/min", comporta.TokenBucket)}}, httplimit.Options{})
		r := ask(limit(upstream(200, "Cache-Control: "+control)), get("/"))
		if got := r.Header.Get("Ratelimit-Limit") == ""; got != bare {
			t.Errorf("%q: without fields %v, want %v", control, got, bare)
		}
	}
}

// Middleware within middleware tells of both in the lists, and of the tighter in the triple.
func TestNested(t *testing.T) {
	headers := []policy.HeaderSet{policy.Triple, policy.Draft11}
	outer, _ := enforce(t, &policy.Policy{Headers: headers, Limits: []*policy.Limit{perAddress(t, "outer", "3/min", comporta.TokenBucket)}}, httplimit.Options{})
	inner, _ := enforce(t, &policy.Policy{Headers: headers, Limits: []*policy.Limit{perAddress(t, "inner", "2/min", comporta.TokenBucket)}}, httplimit.Options{})
	h := outer(inner(http.NotFoundHandler()))
	ask(h, get("/"))
	got := lines(ask(h, get("/")).Header)
	want := []string{
		"Content-Type: text/plain; charset=utf-8",
		"Ratelimit-Limit: 2",
		`Ratelimit-Policy: "inner";q=2;w=60, "outer";q=3;w=60`,
		"Ratelimit-Remaining: 0", "Ratelimit-Reset: 30", `Ratelimit: "inner";r=0;t=30, "outer";r=1;t=20`, "X-Content-Type-Options: nosniff",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A limit without numbers to name, and one of the largest, stay within a
// structured field's integers.
func TestIntegersAreClamped(t *testing.T) {
	show := true
	unlimited := &policy.Limit{Name: "free", Per: perAddress(t, "", "1/s", 0).Per, Limit: comporta.Limit{Unlimited: true}, Show: &show}
	slow := perAddress(t, "slow", "1/400d", comporta.TokenBucket)
	slow.Limit.Burst = 90
	limit, clock := enforce(t, &policy.Policy{Headers: []policy.HeaderSet{policy.Draft11}, Limits: []*policy.Limit{unlimited, slow}}, httplimit.Options{})
	clock.at((400 * 24 * time.Hour).Seconds())
	r := ask(limit(ok), get("/"))
	want := []string{
		`Ratelimit-Policy: "free";q=999999999999999, "slow";q=90;w=3110400000`,
		`Ratelimit: "free";r=999999999999999;t=0, "slow";r=89;t=3075840000`,
	}
	r.Header.Del("Content-Type")
	if diff := cmp.Diff(want, lines(r.Header)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// lines are a header's fields as they would be sent, sorted.
func lines(h http.Header) []string {
	var all []string
	for name, values := range h {
		for _, v := range values {
			all = append(all, name+": "+v)
		}
	}
	slices.Sort(all)
	return all
}
