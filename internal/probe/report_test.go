package probe

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
)

// What a report says of an API with faults of many kinds: review reads it.
func TestTheReportOnTheTerminal(t *testing.T) {
	limit := comporta.Limit{Name: "x", Algorithm: comporta.FixedWindow, Limit: 10, Window: 10 * time.Second}
	a := newSoundAPI(t, limit)
	api := roundTripper(func(req *http.Request) (*http.Response, error) {
		if k := req.Header.Get("X-Api-Key"); k != "other" { // made-up keys are as good as any
			a.mu.Lock()
			if a.keys[k] == nil {
				a.keys[k] = newReplayer(a.rule, 3)
			}
			a.mu.Unlock()
		}
		resp, err := a.RoundTrip(req)
		if resp.StatusCode == 429 {
			resp.Header.Set("Retry-After", "1")
			resp.Header.Set("RateLimit-Reset", "1790000000")
			resp.Header.Del("Access-Control-Allow-Origin")
		}
		return resp, err
	})
	r, err := runOn(t, api, func(o *Options) { o.Expect = &Contract{Limit: limit, AnyAlgorithm: true} })
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WriteText(&b, Screen{Width: 1000}); err != nil {
		t.Fatal(err)
	}
	// What is found out of the limit varies with the order in which answers come.
	_, got, _ := strings.Cut(b.String(), "\nOf ")
	got = withoutNumbers(got)
	golden := filepath.Join("testdata", "report.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("(-golden +got):\n%s", d)
	}
	b.Reset()
	if err := r.WriteText(&b, Screen{Width: 80}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := shownWidth(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	b.Reset()
	if err := r.WriteText(&b, Screen{Width: 80, Color: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "\x1b[31mBAD \x1b[0m") {
		t.Error("no colour where it is wanted")
	}
}

func TestWhoAsks(t *testing.T) {
	first := http.Header{"X-Api-Key": {"k1"}, "Accept": {"text/plain"}, "X-Tenant-Id": {"t1"}, "Origin": {"https://app.example"}}
	for _, c := range []struct {
		second             http.Header
		identity, everyone string
	}{
		{nil, "X-Api-Key X-Tenant-Id", "Accept Origin"},
		{http.Header{"Accept": {"text/html"}}, "Accept", "Origin X-Api-Key X-Tenant-Id"},
	} {
		var target Target
		target.Identify(first, c.second)
		names := func(h http.Header) string {
			return strings.ReplaceAll(strings.Join((&Target{Identities: []http.Header{h}}).as(), ""), ": •••", "")
		}
		identity, everyone := strings.ReplaceAll(names(target.Identities[0]), ",", ""), strings.ReplaceAll(names(target.Header), ",", "")
		if identity != c.identity || everyone != c.everyone || len(target.Identities) != 1+min(1, len(c.second)) {
			t.Errorf("%v: %q and %q", c.second, identity, everyone)
		}
	}
}
