package egress

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/config"
)

// Options are what an egress gateway is made of.
type Options struct {
	Config *config.Egress
	// Limits are the outbound limits of the APIs that have one, by name.
	Limits map[string]client.Outbound
	Log    *slog.Logger
	// Transport carries what goes to the APIs; nil is one of its own.
	Transport http.RoundTripper
}

// A Gateway serves programs until it is told to stop.
type Gateway struct {
	options  Options
	apis     []*api // those with the longest paths first
	listener net.Listener
	metrics  net.Listener // nil where they are told nowhere
	stopping atomic.Bool
	drain    time.Duration
}

// errStopping is why requests end that a gateway cuts off.
var errStopping = errors.New("the gateway stops")

// Timeouts of connections to programs, how long requests under way may take when
// the gateway stops, and how long the answers that they get then.
const (
	readHeader = 10 * time.Second
	idle       = 2 * time.Minute
	drain      = 30 * time.Second
	farewell   = time.Second
	maxHeader  = 64 << 10
)

// New reads the files of secrets and begins to listen.
func New(o Options) (*Gateway, error) {
	g := &Gateway{options: o, drain: drain}
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	for _, c := range o.Config.APIs {
		a, err := newAPI(c, o.Limits[c.Name], o.Transport, o.Log)
		if err != nil {
			return nil, err
		}
		g.apis = append(g.apis, a)
	}
	sortByPath(g.apis)
	var err error
	if g.listener, err = net.Listen("tcp", o.Config.Listen); err != nil {
		return nil, err
	}
	if o.Config.Metrics != "" {
		if g.metrics, err = net.Listen("tcp", o.Config.Metrics); err != nil {
			return nil, errors.Join(err, g.listener.Close())
		}
	}
	return g, nil
}

func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 256
	// What programs and APIs agreed on passes as it is.
	t.DisableCompression = true
	return t
}

// Addr is where programs call, MetricsAddr where health and metrics are told; "" is
// nowhere.
func (g *Gateway) Addr() string { return g.listener.Addr().String() }

func (g *Gateway) MetricsAddr() string {
	if g.metrics == nil {
		return ""
	}
	return g.metrics.Addr().String()
}

// Run serves until ctx ends. Then those in line and under way have 30 s; those that
// are left are told that the gateway stops.
func (g *Gateway) Run(ctx context.Context) error {
	ending, end := context.WithCancelCause(context.Background())
	defer end(errStopping)
	errorLog := slog.NewLogLogger(g.options.Log.Handler(), slog.LevelWarn)
	server := &http.Server{
		Handler: g, ReadHeaderTimeout: readHeader, IdleTimeout: idle, MaxHeaderBytes: maxHeader, ErrorLog: errorLog,
		BaseContext: func(net.Listener) context.Context { return ending },
	}
	beside := &http.Server{Handler: g.health(), ReadHeaderTimeout: readHeader, IdleTimeout: idle, ErrorLog: errorLog}
	failed := make(chan error, 2)
	var serving sync.WaitGroup
	serving.Go(func() { failed <- server.Serve(g.listener) })
	if g.metrics != nil {
		serving.Go(func() { failed <- beside.Serve(g.metrics) })
	}
	g.options.Log.Info("egress is listening", "listen", g.Addr(), "metrics", g.MetricsAddr(), "apis", len(g.apis))
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	g.stopping.Store(true)
	if !shutdown(server, g.drain) {
		g.options.Log.Warn("requests were still under way and are cut off", "after", g.drain.String())
		end(errStopping)
		if !shutdown(server, farewell) {
			err = errors.Join(err, server.Close())
		}
	}
	err = errors.Join(err, beside.Close())
	serving.Wait()
	g.options.Log.Info("egress has stopped")
	return err
}

// shutdown takes no more requests, and says whether those that were there have
// ended in time.
func shutdown(server *http.Server, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return server.Shutdown(ctx) == nil
}
