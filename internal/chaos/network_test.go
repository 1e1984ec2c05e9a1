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

// networkFails are failures between the gateways and one server.
func networkFails(t *testing.T, r *report) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	w := newWire(t, server)
	f := startFleet(t, "redis://"+w.Listen, server.Prefix, deadline)
	r.suffer(t, f, []failure{
		{
			name: "20 ms of latency", bound: exactly, most: limit,
			strike: func() { w.poison(`{"type": "latency", "attributes": {"latency": 20}}`) }, mend: w.heal,
		},
		{
			name: "200 ms of latency", bound: kept, most: limit + members*share, down: true,
			strike: func() { w.poison(`{"type": "latency", "attributes": {"latency": 200}}`) }, mend: w.heal,
		},
		{
			name: "every connection reset", bound: kept, most: limit + members*share, down: true,
			strike: func() { w.poison(`{"type": "reset_peer", "attributes": {"timeout": 0}}`) }, mend: w.heal,
		},
		{
			name: "all connections cut, twelve times", bound: kept, most: limit + members*share,
			strike: w.cut, during: w.cut, mend: w.cut,
		},
	})
}
