package gateway

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/internal/telemetry"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// BenchmarkDesk is what stands before the proxy, without sockets: the limits, the
// metrics, and the access log or none.
func BenchmarkDesk(b *testing.B) {
	for _, bench := range []struct {
		name, limits string
		access       slog.Handler
	}{
		{"no limits", "[]", nil},
		{"one limit", "[{name: a, per: address, limit: 1000000000/s}]", nil},
		{"one limit, access log", "[{name: a, per: address, limit: 1000000000/s}]", slog.NewJSONHandler(io.Discard, nil)},
		{"refused", "[{name: a, per: address, limit: 1/24h}]", nil},
	} {
		b.Run(bench.name, func(b *testing.B) {
			cfg, err := config.Parse("policy.yaml", []byte("server: {upstream: \"http://127.0.0.1:9\"}\nlimits: "+bench.limits))
			if err != nil {
				b.Fatal(err)
			}
			store, err := memstore.New(memstore.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			engine, err := policy.NewEngine(cfg.Policy, store, policy.Options{})
			if err != nil {
				b.Fatal(err)
			}
			cfg.Server.Listen, cfg.Server.Metrics = "127.0.0.1:0", ""
			g, err := New(Options{InForce: InForce{Server: cfg.Server, Engine: engine}, Telemetry: telemetry.New(telemetry.Options{Engine: engine}), Access: bench.access})
			if err != nil {
				b.Fatal(err)
			}
			defer g.Close()
			s := g.reign.Load()
			limits := httplimit.New(engine, httplimit.Options{Observe: s.observe})
			s.handler = limits(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
			handler := g.desk()
			r := httptest.NewRequest(http.MethodGet, "/hello", nil)
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(&nowhere{header: make(http.Header, 8)}, r)
			}
		})
	}
}

// nowhere is an answer that nobody reads.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}
