package httplimit_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// brief is an answer's status and numbers: "200 1 60", or "429 0 58 retry 58".
func brief(r *http.Response) string {
	s := fmt.Sprintf("%d %s %s", r.StatusCode, r.Header.Get("Ratelimit-Remaining"), r.Header.Get("Ratelimit-Reset"))
	if retry := r.Header.Get("Retry-After"); retry != "" {
		s += " retry " + retry
	}
	return s
}

// H01: Retry-After is when the same request passes, not the window.
func TestRetryAfterIsExact(t *testing.T) {
	for _, c := range []struct {
		algorithm comporta.Algorithm
		eleventh  string
		retry     float64
	}{
		{comporta.SlidingLog, "429 0 40 retry 40", 40},
		{comporta.FixedWindow, "429 0 40 retry 40", 40},
		{comporta.SlidingCounter, "429 0 46 retry 46", 46},
		{comporta.TokenBucket, "200 2 12", 0},
	} {
		t.Run(c.algorithm.String(), func(t *testing.T) {
			limit, clock := enforce(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "10/60s", c.algorithm)}}, httplimit.Options{})
			h := limit(ok)
			for i := range 10 {
				clock.at(float64(2 * i))
				if r := ask(h, get("/")); r.StatusCode != 200 {
					t.Fatalf("call %d: %s", i+1, brief(r))
				}
			}
			clock.at(20)
			if got := brief(ask(h, get("/"))); got != c.eleventh {
				t.Fatalf("the eleventh: %s, want %s", got, c.eleventh)
			}
			if c.retry > 0 {
				clock.at(20 + c.retry - 0.000001)
				if got := ask(h, get("/")).StatusCode; got != 429 {
					t.Errorf("a microsecond before the time told: %d", got)
				}
				clock.at(20 + c.retry)
				if got := ask(h, get("/")).StatusCode; got != 200 {
					t.Errorf("at the time told: %d", got)
				}
			}
		})
	}
}

// H03: with nothing remaining the reset is still when the window ends.
func TestResetGoesOnAtZero(t *testing.T) {
	for _, algorithm := range []comporta.Algorithm{comporta.FixedWindow, comporta.SlidingLog} {
		limit, clock := enforce(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "2/60s", algorithm)}}, httplimit.Options{})
		h := limit(ok)
		var got []string
		for i := range 3 {
			clock.at(float64(i))
			got = append(got, brief(ask(h, get("/"))))
		}
		want := []string{"200 1 60", "200 0 59", "429 0 58 retry 58"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", algorithm, diff)
		}
	}
}

// H05: both lists name every shown limit and are structured fields.
func TestListsAreStructuredFields(t *testing.T) {
	quota, err := comporta.ParseQuota("5000/day")
	if err != nil {
		t.Fatal(err)
	}
	limit, clock := enforce(t, &policy.Policy{
		Headers: []policy.HeaderSet{policy.Draft11},
		Limits: []*policy.Limit{
			perAddress(t, "minute", "10/min", comporta.FixedWindow),
			{Name: "day", Per: &identity.Address{}, Limit: quota},
		},
	}, httplimit.Options{})
	h := limit(ok)
	first := ask(h, get("/"))
	want := map[string][]string{
		"Ratelimit-Policy": {`"minute";q=10;w=60, "day";q=5000;w=86400`},
		"Ratelimit":        {`"minute";r=9;t=60, "day";r=4999;t=86400`},
	}
	for name, lines := range want {
		if diff := cmp.Diff(lines, first.Header[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	clock.at(1)
	for range 9 {
		ask(h, get("/"))
	}
	refused := ask(h, get("/"))
	if refused.StatusCode != 429 {
		t.Fatal(refused.Status)
	}
	rates := parseList(t, refused.Header["Ratelimit"], "r", "t")
	if diff := cmp.Diff(map[string][]int64{"minute": {0, 59}, "day": {4990, 59}}, rates); diff != "" {
		t.Errorf("on the denial (-want +got):\n%s", diff)
	}
	parseList(t, refused.Header["Ratelimit-Policy"], "q", "w")
}

// parseList reads a List of Strings with Integer parameters.
func parseList(t *testing.T, lines []string, params ...string) map[string][]int64 {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("%d lines of one field", len(lines))
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		t.Fatalf("%q: %v", lines, err)
	}
	items := map[string][]int64{}
	for _, member := range list {
		item := member.(httpsfv.Item)
		name := item.Value.(string)
		for _, p := range params {
			v, _ := item.Params.Get(p)
			items[name] = append(items[name], v.(int64))
		}
	}
	return items
}

// I01: each pair is one client, however its address is written.
func TestPortIsNoPartOfTheAddress(t *testing.T) {
	p := &policy.Policy{Limits: []*policy.Limit{{
		Name: "a", Per: trusted(t, 0, "10.0.0.5/32"), Limit: limitOf(t, "1/min", comporta.FixedWindow),
	}}}
	limit, _ := enforce(t, p, httplimit.Options{})
	h := limit(ok)
	for _, c := range []struct {
		forwarded string
		status    int
	}{
		{"203.0.113.7:51034", 200},
		{"203.0.113.7:51035", 429},
		{"[2001:db8::7]:443", 200},
		{"2001:db8::7", 429},
	} {
		r := ask(h, get("/", from("10.0.0.5:1234"), with("X-Forwarded-For", c.forwarded)))
		if r.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", c.forwarded, r.StatusCode, c.status)
		}
	}
}

// I03: a /64 is one client, unless the policy says otherwise.
func TestSubscriberIsAPrefix(t *testing.T) {
	calls := []string{"2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2::3", "2001:db8:1:2::4", "2001:db8:1:3::1"}
	for prefix, want := range map[int][]int{
		0:   {200, 200, 200, 429, 200},
		128: {200, 200, 200, 200, 200},
	} {
		p := &policy.Policy{Limits: []*policy.Limit{{
			Name: "a", Per: trusted(t, prefix, "10.0.0.5/32"), Limit: limitOf(t, "3/min", comporta.FixedWindow),
		}}}
		limit, _ := enforce(t, p, httplimit.Options{})
		h := limit(ok)
		var got []int
		for _, client := range calls {
			got = append(got, ask(h, get("/", from("10.0.0.5:1234"), with("X-Forwarded-For", client))).StatusCode)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("prefix %d (-want +got):\n%s", prefix, diff)
		}
	}
}

// I05: the client is the rightmost that is not trusted; a stranger's header is not read.
func TestForgedEntriesAreNotReached(t *testing.T) {
	p := &policy.Policy{Limits: []*policy.Limit{{
		Name: "a", Per: trusted(t, 0, "172.16.0.0/12"), Limit: limitOf(t, "5/min", comporta.FixedWindow),
	}}}
	limit, _ := enforce(t, p, httplimit.Options{})
	h := limit(ok)
	passed := func(peer, forwarded string) (n int) {
		for i := range 12 {
			list := strings.ReplaceAll(forwarded, "FORGED", "9.9.9."+strconv.Itoa(i))
			if ask(h, get("/", from(peer), with("X-Forwarded-For", list))).StatusCode == 200 {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		what, peer, forwarded string
		passed                int
	}{
		{"behind two proxies", "172.17.0.9:80", "FORGED, 198.51.100.23, 172.17.0.1", 5},
		{"the same client again", "172.17.0.9:80", "198.51.100.23", 0},
		{"a stranger", "192.0.2.200:80", "FORGED", 5},
		{"all trusted: the leftmost", "172.17.0.9:80", "172.18.0.1, 172.17.0.1", 5},
	} {
		if got := passed(c.peer, c.forwarded); got != c.passed {
			t.Errorf("%s: %d of 12 passed, want %d", c.what, got, c.passed)
		}
	}
}

// P03: a shadow limit refuses nothing and hides nothing; two limits with one
// match each count a request once.
func TestLimitsDoNotHideEachOther(t *testing.T) {
	shadow := perAddress(t, "shadow", "1/min", comporta.FixedWindow)
	shadow.Mode = policy.Shadow
	shadow.Match = patterns(t, "/items/")
	wide, narrow := perAddress(t, "wide", "1000/min", comporta.FixedWindow), perAddress(t, "narrow", "10/min", comporta.FixedWindow)
	wide.Match, narrow.Match = patterns(t, "/items/"), patterns(t, "/items/")

	var shadowDenied int
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{shadow, wide, narrow}}, httplimit.Options{
		Observe: func(v *policy.Verdict, _ *http.Request) {
			if !v.Applied[0].Decision.Allowed {
				shadowDenied++
			}
		},
	})
	h := limit(ok)
	for i := range 12 {
		r := ask(h, get("/items/7"))
		want := "200 " + strconv.Itoa(9-i) + " 60"
		if i >= 10 {
			want = "429 0 60 retry 60"
		}
		if got := brief(r); got != want {
			t.Errorf("call %d: %s, want %s", i+1, got, want)
		}
	}
	if shadowDenied != 11 {
		t.Errorf("the shadow limit reported %d denials, want 11", shadowDenied)
	}
}
