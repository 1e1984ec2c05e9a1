package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/internal/telemetry"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

const (
	secretToken = "correct-horse-battery-staple"
	otherToken  = "0123456789abcdef0123456789abcdef"
)

// policyText has a limit of each kind that matters here.
const policyText = `
server: {upstream: "http://127.0.0.1:9"}
identities:
  api_key: {header: X-API-Key, keys: keys.yaml}
plans:
  pro: {requests: 600/min burst 100}
limits:
  - {name: requests, per: [api_key, address], limit: 60/min burst 20}
  - {name: product, per: {header: X-Product}, limit: 10/min, algorithm: fixed_window}
  - {name: month, per: api_key, quota: 1000/month}
  - {name: login, match: POST /login, per: address, limit: 5/10m, algorithm: sliding_log}
  - {name: all, per: everyone, limit: 1000000/s}
  - {name: off, per: api_key, limit: 10/s, mode: off}
overrides:
  - {who: {api_key: early}, limits: {requests: 7/min}, through: 2096-01-31, reason: they asked}
`

// A house is an administration with all that it changes.
type house struct {
	t         *testing.T
	dir       string
	said      config.Admin
	cfg       *config.Config
	engine    *policy.Engine
	store     *memstore.Store
	telemetry *telemetry.Telemetry
	log       *buffer
	server    *Server
	url       string
	client    http.Client
}

// buffer is a log that may be read while it is written to.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newHouse is a house that nobody can come into yet.
func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), log: new(buffer)}
	h.said = config.Admin{Listen: "127.0.0.1:0", TokenFile: h.file("admin.token", "# who may\nann "+secretToken+"\n"), Overrides: filepath.Join(h.dir, "overrides.json"), Audit: filepath.Join(h.dir, "audit.log")}
	h.file("keys.yaml", "- {id: acme, key: key-of-acme-0123456789, plan: pro}\n- {id: early, key: key-of-early-0123456789}\n")
	var err error
	if h.store, err = memstore.New(memstore.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.store.Close() })
	h.load(policyText)
	h.telemetry = telemetry.New(telemetry.Options{Engine: h.engine, Top: 100})
	return h
}

func (h *house) file(name, text string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// load puts a policy in force.
func (h *house) load(text string) {
	h.t.Helper()
	cfg, err := config.Load(h.file("policy.yaml", text))
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cfg.LoadSecret(); err != nil {
		h.t.Fatal(err)
	}
	if err := cfg.LoadKeys(); err != nil {
		h.t.Fatal(err)
	}
	h.cfg = cfg
	if h.engine, err = policy.NewEngine(cfg.Policy, h.store, policy.Options{Before: h.engine}); err != nil {
		h.t.Fatal(err)
	}
}

// open lets operators in.
func (h *house) open() *house {
	h.t.Helper()
	server, err := New(Options{
		Said: h.said, InForce: func() (*config.Config, *policy.Engine) { return h.cfg, h.engine }, Changing: new(sync.Mutex),
		Telemetry: h.telemetry, Log: slog.New(slog.NewTextHandler(h.log, nil)),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.server, h.url = server, "http://"+server.Addr().String()
	if path, unix := strings.CutPrefix(h.said.Listen, "unix:"); unix {
		h.url = "http://localhost"
		h.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	h.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
	})
	return h
}

// request is a request of somebody who shows the token.
func (h *house) request(method, path, body string) *http.Request {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secretToken)
	return r
}

// do sends a request, and is the answer.
func (h *house) do(r *http.Request) (status int, body string, header http.Header) {
	h.t.Helper()
	w, err := h.client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	if w.Header.Get("Access-Control-Allow-Origin") != "" || strings.Contains(string(text), secretToken) {
		h.t.Errorf("%s %s tells too much: %v %s", r.Method, r.URL, w.Header, text)
	}
	return w.StatusCode, string(text), w.Header
}

// ask wants a status, and reads the answer into something unless that is nil.
func (h *house) ask(method, path, body string, want int, into any) string {
	h.t.Helper()
	status, text, _ := h.do(h.request(method, path, body))
	if status != want {
		h.t.Errorf("%s %s %s: %d, want %d: %s", method, path, body, status, want, text)
		return text
	}
	checkAnswer(h.t, method, path, status, text)
	if into != nil {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			h.t.Errorf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return text
}

// spend lets a client send requests.
func (h *house) spend(n int, header http.Header, path string) {
	h.t.Helper()
	for range n {
		v := new(policy.Verdict)
		h.engine.Check(h.t.Context(), requestOf(header, path), v)
		h.telemetry.Observe(v)
	}
}

func (h *house) audit() string {
	h.t.Helper()
	text, err := os.ReadFile(h.said.Audit)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

func requestOf(header http.Header, path string) *identity.Request {
	method, path, _ := strings.Cut(path, " ")
	return &identity.Request{Method: method, Path: path, Header: header}
}
