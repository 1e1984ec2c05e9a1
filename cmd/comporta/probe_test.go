package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
)

// limitedAPI lets 10 in a second pass, of each key, and counts what comes.
func limitedAPI(t *testing.T) (url string, sent *atomic.Int64) {
	t.Helper()
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	limit := comporta.Limit{Name: "calls", Algorithm: comporta.SlidingLog, Limit: 10, Window: time.Second}
	limiter, err := comporta.NewLimiter(store, limit)
	if err != nil {
		t.Fatal(err)
	}
	sent = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		d, err := limiter.Take(r.Context(), "of "+r.Header.Get("X-Api-Key"), 1)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("RateLimit-Limit", "10")
		w.Header().Set("RateLimit-Remaining", strconv.FormatInt(d.Remaining, 10))
		w.Header().Set("RateLimit-Reset", "1")
		if !d.Allowed {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		io.WriteString(w, "hello")
	}))
	t.Cleanup(server.Close)
	return server.URL + "/search?token=hush-3", sent
}

func TestProbeReportsAndKeepsSecrets(t *testing.T) {
	url, _ := limitedAPI(t)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	policy := file(t, "policy.yaml", "server: {upstream: \"http://127.0.0.1:9000\"}\nlimits:\n  - {name: calls, per: address, limit: 10/s, algorithm: sliding_log}\n  - {name: other, per: address, limit: 99/s, algorithm: sliding_log}\n")
	runs := []struct {
		args      []string
		code      int
		out, errs string // what is in it
	}{
		{[]string{"-H", "X-API-Key: hush-1", "--second-identity", "X-API-Key: hush-2", "--html", in("r.html"), "--json", in("r.json"), "--junit", in("r.xml")}, 0, "a sliding_log", ""},
		{[]string{"--quick", "--expect", "10/s", "--algorithm", "sliding_log", "-H", "X-API-Key: a"}, 0, "Is it a sliding_log?", ""},
		{[]string{"--quick", "--expect", "25/s", "-H", "X-API-Key: b"}, 1, "25 is expected, and it is 10", ""},
		{[]string{"--quick", "-c", policy, "--limit-name", "calls", "--json", "-", "-H", "X-API-Key: c"}, 0, `"name": "expect-window"`, "is sent at most"},
		{[]string{"--quick", "-c", policy, "--limit-name", "other", "-H", "X-API-Key: d"}, 1, "99 is expected", ""},
	}
	var all sync.WaitGroup
	var outs, errs [5]string
	var codes [5]int
	for i, r := range runs {
		all.Go(func() {
			codes[i], outs[i], errs[i] = commandUnder(t.Context(), append([]string{"probe", url}, r.args...)...)
		})
	}
	all.Wait()
	for i, r := range runs {
		if codes[i] != r.code || !strings.Contains(outs[i], r.out) || !strings.Contains(errs[i], r.errs) {
			t.Errorf("probe %v: code %d, want %d\n%s\n%s", r.args, codes[i], r.code, outs[i], errs[i])
		}
	}
	written := outs[0] + errs[0]
	for _, name := range []string{"r.html", "r.json", "r.xml"} {
		text, err := os.ReadFile(in(name))
		if err != nil {
			t.Fatal(err)
		}
		written += string(text)
	}
	if strings.Contains(written, "hush") {
		t.Error("a secret is in a report")
	}
	if !strings.Contains(outs[0], "X-Api-Key: •••") {
		t.Error("it is not said as whom it asks")
	}
	var suite struct {
		Tests int `xml:"tests,attr"`
	}
	text, _ := os.ReadFile(in("r.xml"))
	if err := xml.Unmarshal(text, &suite); err != nil || suite.Tests < 15 {
		t.Errorf("JUnit: %v, %d tests", err, suite.Tests)
	}
	var report map[string]any
	if err := json.Unmarshal([]byte(outs[3]), &report); err != nil {
		t.Errorf("--json - writes something else, too: %v", err)
	}
}

func TestProbeSendsNothingUnasked(t *testing.T) {
	own := "" // an address of this machine that is not loopback
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			own = n.IP.String()
		}
	}
	if own == "" {
		t.Skip("this machine has no address but loopback")
	}
	var sent atomic.Int64
	l, err := net.Listen("tcp", net.JoinHostPort(own, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
	server.Listener.Close()
	server.Listener = l
	server.Start()
	defer server.Close()
	code, out, errs := commandUnder(t.Context(), "probe", server.URL)
	if code != exitUsage || !strings.Contains(errs, "add --yes") || sent.Load() != 0 {
		t.Errorf("code %d, %d sent\n%s%s", code, sent.Load(), out, errs)
	}
	if !strings.Contains(out, "at most 5000 requests, within 10m") {
		t.Errorf("it does not say what it would send:\n%s", out)
	}
	code, out, _ = commandUnder(t.Context(), "probe", server.URL, "--yes", "--quick", "--max-requests", "7")
	if code != exitOK || sent.Load() < 1 || sent.Load() > 7 || !strings.Contains(out, "of at most 7 requests") {
		t.Errorf("code %d, %d sent\n%s", code, sent.Load(), out)
	}
}

func TestProbeStops(t *testing.T) {
	for _, test := range []struct {
		name string
		fail func(n int64) int // the status of the n-th request
		most int64
		want string
	}{
		{"a failure", func(n int64) int { return map[bool]int{true: 200, false: 502}[n < 3] }, 12, "the server failed (5xx)"},
		{"refusals of another status", func(n int64) int { return map[bool]int{true: 200, false: 403}[n < 9] }, 100, "--denied 403"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var sent atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(test.fail(sent.Add(1))) }))
			defer server.Close()
			code, out, errs := commandUnder(t.Context(), "probe", server.URL)
			if code != exitFailed || sent.Load() > test.most || !strings.Contains(out, test.want) {
				t.Errorf("code %d, %d sent\n%s%s", code, sent.Load(), out, errs)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		server := httptest.NewServer(nil)
		server.Close()
		code, out, errs := commandUnder(t.Context(), "probe", server.URL+"/?key=hush")
		if code != exitFailed || !strings.Contains(out, "connection refused") || strings.Contains(out+errs, "hush") {
			t.Errorf("code %d\n%s%s", code, out, errs)
		}
	})
	t.Run("an interruption", func(t *testing.T) {
		url, sent := limitedAPI(t)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		code, out, errs := commandUnder(ctx, "probe", url)
		if code != exitFailed || sent.Load() == 0 || !strings.Contains(out, "it was interrupted") {
			t.Errorf("code %d, %d sent\n%s%s", code, sent.Load(), out, errs)
		}
	})
}

func TestProbeSaysWhatIsWrong(t *testing.T) {
	policy := file(t, "policy.yaml", goodPolicy)
	for _, test := range []struct {
		args string
		want string
	}{
		{"127.0.0.1:8080", "write the URL like"},
		{"http://a:hush@127.0.0.1:1/", "the URL has a user in it"},
		{"http://127.0.0.1:1/ -H hush", "-H: write it like"},
		{"http://127.0.0.1:1/ --second-identity =hush", "--second-identity: write it like"},
		{"http://127.0.0.1:1/ --max-requests 0", "more than nothing"},
		{"http://127.0.0.1:1/ --denied 200", "from 400 to 599"},
		{"http://127.0.0.1:1/ --expect often", "--expect"},
		{"http://127.0.0.1:1/ --expect 1/s --algorithm guess", "--algorithm"},
		{"http://127.0.0.1:1/ --expect 1/s -c " + policy, "either --expect or -c"},
		{"http://127.0.0.1:1/ -c " + policy, "several limits: say which with --limit-name: requests, keys"},
		{"http://127.0.0.1:1/ -X G,T", "--method: letters"},
		{"http://127.0.0.1:1/ --algorithm fixed_window", "--algorithm goes with --expect"},
		{"http://127.0.0.1:1/ --limit-name x", "--limit-name goes with -c"},
		{"http://127.0.0.1:1/ --html /nowhere/r.html", "cannot write /nowhere/r.html: there is no folder /nowhere"},
		{"http://127.0.0.1:1/ -H X-Key:hush\x00", "-H: write it like"},
		{"http://127.0.0.1:1/ --limit-name x -c " + policy, "no limit with a window is named x"},
	} {
		code, out, errs := commandUnder(t.Context(), append([]string{"probe"}, strings.Fields(test.args)...)...)
		if code != exitUsage || !strings.Contains(errs, test.want) || strings.Contains(out+errs, "hush") {
			t.Errorf("probe %s: code %d\n%s%s", test.args, code, out, errs)
		}
	}
}
