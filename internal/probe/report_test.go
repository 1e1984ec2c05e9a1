package probe

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
)

// reportOf is a report with verdicts of each kind.
func reportOf() *Report {
	began := time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC)
	r := &Report{
		Target: Target{Method: "GET", URL: "https://api.example.com/search?q=1", Identities: []http.Header{{"X-Api-Key": {"k1"}}, {"X-Api-Key": {"k2"}}}},
		Budget: Budget{Requests: 5000, Time: 10 * time.Minute}, Began: began, Took: 20 * time.Second, Ended: "it was interrupted",
		Finding: &Finding{
			Limited: true, Limit: comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 10, Window: 5 * time.Second},
			Units: Estimate{10, 10, 10}, Window: Estimate{5, 4.9, 5.02},
			Algorithms: []Candidate{{comporta.FixedWindow, 0.75}, {comporta.SlidingCounter, 0.2}, {comporta.SlidingLog, 0.001}},
			Evidence:   []string{"what was used came back all at once, at boundaries 4.9 to 5.02 s apart, however it was used before", "headers say 10 too"},
		},
		Checks: []Check{
			{Name: "answers", Asks: "Is the request answered as it should be?", Verdict: Good, Seen: "status 200 (20 times), 429 (15 times)"},
			{Name: "standards", Asks: "Is what it says as the standards have it?", Verdict: Bad, Seen: "a refusal is not as these have it: RFC 9110 (Retry-After)",
				Details: []string{"RFC 6585 (429): kept", "RFC 9110 (Retry-After): broken: \"1.5\" is neither whole seconds nor a date", "RFC 9457 (problem details): not used"},
				Why:     "clients ignore what is malformed, or fail on it", Todo: "send one Retry-After, in whole seconds"},
			{Name: "boundary", Asks: "Can a client get double the limit around a boundary?", Verdict: Warn, Seen: "yes: 19 passed within 134 ms around the end of a window, of a limit of 10 in 5 s",
				Why: "what is behind the limit must bear twice of what it says", Todo: "use a sliding window, or a bucket with a small burst, where that is too much"},
			{Name: "remaining", Asks: "Does Remaining tell the truth?", Verdict: Unknown, Seen: "nothing is said of what remains, or nothing could be compared"},
			{Name: "methods", Asks: "Do HEAD and OPTIONS get past the limit?", Verdict: Unknown, Seen: "not tried: it was interrupted"},
			{Name: "keys", Asks: "Does a made-up key get past the limit?", Verdict: Unknown, Seen: "not tried: it was interrupted"},
			{Name: "paths", Asks: "Does another spelling of the path get past the limit?", Verdict: Unknown, Seen: "not tried: it was interrupted"},
		},
	}
	for i := range 60 { // twelve each 4 s, of which ten pass
		at := began.Add(time.Duration(i/12)*4*time.Second + time.Duration(i%12)*10*time.Millisecond)
		s := Shot{Sent: at, Received: at.Add(20 * time.Millisecond), Status: 200, Request: &Request{}}
		if i%12 >= 10 {
			s.Status = 429
		}
		r.Shots = append(r.Shots, s)
	}
	r.Requests = len(r.Shots)
	return r
}

// Reports as people read them: review reads them, too.
func TestReports(t *testing.T) {
	r := reportOf()
	for name, write := range map[string]func(io.Writer) error{
		"report.txt":         func(w io.Writer) error { return r.WriteText(w, Screen{Width: 80}) },
		"report-colours.txt": func(w io.Writer) error { return r.WriteText(w, Screen{Width: 60, Color: true}) },
		"report.html":        r.WriteHTML,
		"report.json":        r.WriteJSON,
		"report.xml":         r.WriteJUnit,
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), b.String()); d != "" {
				t.Errorf("(-golden +got):\n%s", d)
			}
			for line := range strings.Lines(b.String()) {
				if n := shownWidth(strings.TrimSuffix(line, "\n")); n > 80 && strings.HasSuffix(name, ".txt") {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
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
