package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// A thirdParty is an API that limits, and remembers.
type thirdParty struct {
	*httptest.Server
	mu      sync.Mutex
	came    []*http.Request
	bodies  []string
	refused atomic.Int64
}

func newThirdParty(t *testing.T, answer http.HandlerFunc) *thirdParty {
	p := &thirdParty{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		p.mu.Lock()
		p.came, p.bodies = append(p.came, req), append(p.bodies, string(body))
		p.mu.Unlock()
		answer(w, req)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *thirdParty) last() *http.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.came[len(p.came)-1]
}

// run starts an egress gateway on free ports; text is its apis.
func run(t *testing.T, apis string, logs io.Writer) *Gateway {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "api.key"), []byte("Bearer very-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.ParseEgress(filepath.Join(dir, "egress.yaml"), []byte("listen: 127.0.0.1:0\nmetrics: 127.0.0.1:0\napis:\n"+apis))
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewJSONHandler(logs, nil))
	limits := map[string]client.Outbound{}
	for _, a := range cfg.APIs {
		if a.Rule == nil {
			continue
		}
		if limits[a.Name], err = NewLimit(a.Rule, store, nil, policy.Local, log); err != nil {
			t.Fatal(err)
		}
	}
	g, err := New(Options{Config: cfg, Limits: limits, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestPassesOn(t *testing.T) {
	p := newThirdParty(t, func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, "hello") })
	var logs syncBuffer
	g := run(t, `
- {name: pay, path: /pay, upstream: "`+p.URL+`/base", headers: {Authorization: {file: api.key}, X-Team: core}}
- {name: deep, path: /pay/deep, upstream: "`+p.URL+`/other"}
`, &logs)
	req, _ := http.NewRequest("POST", "http://"+g.Addr()+"/pay/a%2Fb/c?x=%20y", strings.NewReader("body"))
	req.Header.Set("X-Forwarded-For", "10.0.0.9")
	req.Header.Set("Forwarded", "for=10.0.0.9")
	req.Header.Set("X-Real-Ip", "10.0.0.9")
	req.Header.Set("Authorization", "Bearer of-the-program")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	got := p.last()
	if string(body) != "hello" || p.bodies[0] != "body" || got.RequestURI != "/base/a%2Fb/c?x=%20y" || "http://"+got.Host != p.URL {
		t.Errorf("%q, %q, %s, %s", body, p.bodies[0], got.RequestURI, got.Host)
	}
	if got.Header.Get("Authorization") != "Bearer very-secret" || got.Header.Get("X-Team") != "core" {
		t.Error(got.Header)
	}
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"} {
		if v := got.Header.Get(name); v != "" {
			t.Errorf("%s tells the API who asked: %s", name, v)
		}
	}
	get(t, "http://"+g.Addr()+"/pay/deep/x")
	if uri := p.last().RequestURI; uri != "/other/x" {
		t.Errorf("the longer path goes to %s", uri)
	}
	if _, metrics := get(t, "http://"+g.MetricsAddr()+"/metrics"); !strings.Contains(metrics, `comporta_egress_attempts_total{api="pay"} 1`) || strings.Contains(metrics, "secret") {
		t.Error(metrics)
	}
	if strings.Contains(logs.String(), "secret") {
		t.Error("a secret is in the log:", logs.String())
	}
}

func TestStrangePaths(t *testing.T) {
	p := newThirdParty(t, func(w http.ResponseWriter, req *http.Request) {})
	g := run(t, `- {name: pay, path: /pay, upstream: "`+p.URL+`/base"}`, io.Discard)
	for path, want := range map[string]int{
		"/": 404, "/payroll": 404, "/other": 404,
		"/pay/../other": 400, "/pay/%2e%2e/other": 400, "/pay/%2E./x": 400, "/pay/..%2fx": 400, "/pay/%252e%252e/x": 400,
		"/pay/./x": 400, `/pay/..%5cx`: 400, "/pay/..;a=b/x": 400,
		"/pay": 200, "/pay/": 200, "/pay//x": 200, "/pay/...": 200, "/pay/%25": 200,
	} {
		req, _ := http.NewRequest("GET", "http://"+g.Addr(), nil)
		req.URL.Opaque = "//" + g.Addr() + path
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	if resp, body := get(t, "http://"+g.Addr()+"/nowhere"); resp.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(body, "/pay") {
		t.Error(body)
	}
}

// Two programs that do not care, and an API that allows 20 at once and 20 a
// second: it refuses nobody, and all pass.
func TestTheQuotaIsKept(t *testing.T) {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	limit, _ := comporta.ParseLimit("50/s burst 10")
	limiter, err := comporta.NewLimiter(store, limit)
	if err != nil {
		t.Fatal(err)
	}
	var p *thirdParty
	p = newThirdParty(t, func(w http.ResponseWriter, req *http.Request) {
		if d, _ := limiter.Take(req.Context(), "all", 1); !d.Allowed {
			p.refused.Add(1)
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	g := run(t, `- {name: pay, path: /, upstream: "`+p.URL+`", limit: 40/s burst 5}`, io.Discard)
	var programs sync.WaitGroup
	var passed atomic.Int64
	for range 2 {
		for range 20 {
			programs.Go(func() {
				resp, err := http.Post("http://"+g.Addr()+"/x", "text/plain", strings.NewReader("x"))
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
				if resp.StatusCode == 200 {
					passed.Add(1)
				}
			})
		}
	}
	programs.Wait()
	if passed.Load() != 40 || p.refused.Load() != 0 {
		t.Errorf("%d of 40 passed, %d were refused", passed.Load(), p.refused.Load())
	}
}

// What the API refuses is waited for as it told, by all; what it refuses for too
// long comes back as it is, and what comes then is answered here.
func TestTheGate(t *testing.T) {
	var after atomic.Value
	after.Store("1")
	var shut atomic.Bool
	shut.Store(true)
	p := newThirdParty(t, func(w http.ResponseWriter, req *http.Request) {
		if shut.CompareAndSwap(true, false) {
			w.Header().Set("Retry-After", after.Load().(string))
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, "not now")
			return
		}
		fmt.Fprint(w, "hello")
	})
	g := run(t, `- {name: pay, path: /, upstream: "`+p.URL+`"}`, io.Discard)
	began := time.Now()
	resp, err := http.Post("http://"+g.Addr()+"/x", "text/plain", strings.NewReader("order"))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if took := time.Since(began); took < time.Second || string(body) != "hello" || len(p.bodies) != 2 || p.bodies[1] != "order" {
		t.Errorf("%v, %q, %q", took, body, p.bodies)
	}

	after.Store("600")
	shut.Store(true)
	resp, text := get(t, "http://"+g.Addr()+"/x")
	if resp.StatusCode != 429 || text != "not now" || resp.Header.Get("Retry-After") != "600" || resp.Header.Get(reasonField) != "too-long" {
		t.Error(resp.StatusCode, text, resp.Header)
	}
	resp, text = get(t, "http://"+g.Addr()+"/x")
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "600" || resp.Header.Get(reasonField) != "gate" || !strings.Contains(text, "said not to call yet") {
		t.Error(resp.StatusCode, text, resp.Header)
	}
	if len(p.bodies) != 3 {
		t.Errorf("%d requests reached the API, want 3", len(p.bodies))
	}
}

// Streams pass as they come; bodies that are too large to keep pass, and are not
// sent twice.
func TestStreamsAndLargeBodies(t *testing.T) {
	var again atomic.Int64
	more := make(chan struct{})
	p := newThirdParty(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/stream" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: 1\n\n")
			w.(http.Flusher).Flush()
			<-more
			fmt.Fprint(w, "data: 2\n\n")
			return
		}
		again.Add(1)
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	g := run(t, `- {name: pay, path: /, upstream: "`+p.URL+`", max_body: 1KiB}`, io.Discard)
	resp, err := http.Get("http://" + g.Addr() + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 9)
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "data: 1\n\n" {
		t.Errorf("%q, %v", first, err)
	}
	close(more)
	rest, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(rest) != "data: 2\n\n" {
		t.Errorf("%q", rest)
	}

	large := strings.Repeat("x", 2000)
	resp, err = http.Post("http://"+g.Addr()+"/order", "text/plain", io.MultiReader(strings.NewReader(large))) // of unknown length
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 429 || again.Load() != 1 || p.bodies[len(p.bodies)-1] != large || resp.Header.Get(reasonField) != "unsafe" {
		t.Error(resp.StatusCode, again.Load(), resp.Header)
	}
}

func TestTheAPIIsAway(t *testing.T) {
	p := newThirdParty(t, func(http.ResponseWriter, *http.Request) {})
	p.Close()
	g := run(t, `- {name: pay, path: /, upstream: "`+p.URL+`", attempts: 1, headers: {Authorization: {file: api.key}}}`, io.Discard)
	resp, text := get(t, "http://"+g.Addr()+"/x")
	if resp.StatusCode != 502 || !strings.Contains(text, "cannot be reached") || strings.Contains(text, "secret") {
		t.Error(resp.StatusCode, text)
	}
}

// A store that fails is what on_error says.
func TestOnError(t *testing.T) {
	rule, err := mustLimit(t, "1/min").Compile()
	if err != nil {
		t.Fatal(err)
	}
	local, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	for onError, want := range map[policy.OnError]string{policy.Local: "true false", policy.Allow: "true true", policy.Deny: "error error"} {
		if err := local.Reset(t.Context(), []comporta.Key{{Limit: "egress.pay", Identity: "x"}}); err != nil {
			t.Fatal(err)
		}
		limit, err := NewLimit(rule, broken{}, local, onError, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range 2 {
			if d, err := limit.Take(t.Context(), "x", 1); err != nil {
				got = append(got, "error")
			} else {
				got = append(got, fmt.Sprint(d.Allowed))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %v, want %s", onError, got, want)
		}
	}
}

func mustLimit(t *testing.T, text string) comporta.Limit {
	l, err := comporta.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	l.Name = "egress.pay"
	return l
}

type broken struct{}

func (broken) Take(context.Context, []comporta.Take, []comporta.Taken) error {
	return errors.New("away")
}
func (broken) Settle(context.Context, []comporta.Settlement, []comporta.Taken) error {
	return errors.New("away")
}

func TestNoSecretNoStart(t *testing.T) {
	cfg, err := config.ParseEgress("egress.yaml", []byte(`apis: [{name: a, path: /, upstream: "http://127.0.0.1:1", headers: {Authorization: {file: nowhere.key}}}]`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Config: cfg, Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "nowhere.key") || !strings.Contains(err.Error(), "Authorization") {
		t.Error(err)
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
