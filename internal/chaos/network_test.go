package chaos

import (
	"context"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/comporta/comporta/internal/redistest"
)

// A wire is a network to a server that can be made a bad one.
type wire struct {
	*toxiproxy.Proxy
	t testing.TB
}

func newWire(t testing.TB, server *redistest.Server) *wire {
	t.Helper()
	of := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	w := &wire{toxiproxy.NewProxy(of, "wire", "127.0.0.1:0", server.Addr), t}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// poison makes it worse, as toxiproxy describes in JSON.
func (w *wire) poison(toxic string) {
	w.t.Helper()
	if _, err := w.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		w.t.Fatal(err)
	}
}

// heal makes it a good one.
func (w *wire) heal() { w.Toxics.ResetToxics(context.Background()) }

// cut ends all connections, and lets new ones in.
func (w *wire) cut() {
	w.t.Helper()
	w.Stop()
	if err := w.Start(); err != nil {
		w.t.Fatal(err)
	}
}

func TestNetwork(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	w := newWire(t, server)
	f := startFleet(t, "redis://"+w.Listen, server.Prefix, deadline)
	all := []struct {
		name string
		failure
	}{
		{"20 ms of latency", failure{most: limit,
			strike: func() { w.poison(`{"type": "latency", "attributes": {"latency": 20, "jitter": 2}}`) }, mend: w.heal,
		}},
		{"200 ms of latency", failure{most: limit + members*share, down: true,
			strike: func() { w.poison(`{"type": "latency", "attributes": {"latency": 200}}`) }, mend: w.heal,
		}},
		{"connections reset at once", failure{most: limit + members*share, down: true,
			strike: func() { w.poison(`{"type": "reset_peer", "attributes": {"timeout": 0}}`) }, mend: w.heal,
		}},
		{"connections cut", failure{most: limit + members*share, strike: func() {}, mend: w.cut, during: w.cut}},
	}
	for i, x := range all {
		t.Run(x.name, func(t *testing.T) { t.Logf("%+v", f.suffer(t, i, x.failure)) })
	}
}
