package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/internal/telemetry"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// A house is a gateway that serves in this process, with all that it is made of.
type house struct {
	*Gateway
	url, metrics string
	store        *memstore.Store
	telemetry    *telemetry.Telemetry
	log, access  *lines
	stop         context.CancelFunc
	ended        chan error
}

// serve starts a gateway on free ports: a policy file without its server, in
// front of an upstream. It stops at the test's end. Unless the clock is nil,
// limits go by it.
func serve(t *testing.T, upstream, file string, clock *clock, change ...func(*Options)) *house {
	t.Helper()
	cfg, err := config.Parse("policy.yaml", []byte(fmt.Sprintf("server: {upstream: %q}\n%s", upstream, file)))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Server.Listen, cfg.Server.Metrics = "127.0.0.1:0", "127.0.0.1:0"
	if err := cfg.LoadSecret(); err != nil {
		t.Fatal(err)
	}
	var instants func() time.Time
	if clock != nil {
		instants = clock.now
	}
	store, err := memstore.New(memstore.Options{Now: instants})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	engine, err := policy.NewEngine(cfg.Policy, store, policy.Options{Now: instants})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{store: store, log: new(lines), access: new(lines), ended: make(chan error, 1)}
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	h.telemetry = telemetry.New(telemetry.Options{Engine: engine, Log: log})
	o := Options{
		InForce: InForce{Server: cfg.Server, Engine: engine}, Telemetry: h.telemetry,
		Log: log, Access: slog.NewTextHandler(h.access, nil),
	}
	for _, c := range change {
		c(&o)
	}
	if h.Gateway, err = New(o); err != nil {
		t.Fatal(err)
	}
	scheme := "http://"
	if o.Server.TLS != nil {
		scheme = "https://"
	}
	h.url, h.metrics = scheme+h.Addr().String(), "http://"+h.MetricsAddr().String()
	var ctx context.Context
	ctx, h.stop = context.WithCancel(context.Background())
	go func() { h.ended <- h.Run(ctx) }()
	t.Cleanup(func() {
		h.stop()
		h.Close()
		if err := <-h.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		h.ended <- nil
	})
	return h
}

// desk is one like the gateway's, with another handler behind it.
func (h *house) desk(next http.Handler) http.Handler {
	g, s := &Gateway{o: h.o, log: h.Gateway.log}, *h.reign.Load()
	s.of, s.handler = g, next
	g.reign.Store(&s)
	return g.desk()
}

// api is an upstream that lives as long as the test.
func api(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello\n") }

// A clock stands still until it is moved.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// lines is a log in memory.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// client is a client of its own, so that no test's connections serve another.
func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// get asks and reads the whole answer.
func get(t *testing.T, c *http.Client, url string, fields ...string) (*http.Response, string) {
	t.Helper()
	return do(t, c, http.MethodGet, url, nil, fields...)
}

func do(t *testing.T, c *http.Client, method, url string, body io.Reader, fields ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

// status is get's status alone.
func status(t *testing.T, c *http.Client, url string, fields ...string) int {
	t.Helper()
	res, _ := get(t, c, url, fields...)
	return res.StatusCode
}
