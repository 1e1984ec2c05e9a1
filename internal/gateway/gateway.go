package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta/internal/telemetry"
)

// Options say what a gateway does.
type Options struct {
	// InForce is what it begins with.
	InForce
	// Telemetry counts.
	Telemetry *telemetry.Telemetry
	// Shared tells how the store that instances share is, for /readyz; nil where
	// there is none.
	Shared func() telemetry.SharedStats
	// Failing tells, for /readyz, what of others' that credentials are verified by
	// cannot be asked for now; nil where nothing is.
	Failing func() []string
	// Log hears of starts, stops and failures; nil drops them.
	Log *slog.Logger
	// Access gets one record for each request; nil keeps no access log.
	Access slog.Handler
	// DrainDelay is how long a gateway that was told to stop still takes new
	// connections while /readyz says 503, so that who balances load can look away.
	DrainDelay time.Duration
}

// A Gateway listens from New on, serves during Run, and is not used again after
// either Run or Close.
type Gateway struct {
	o        Options
	log      *slog.Logger
	reign    atomic.Pointer[reign]
	public   *http.Server
	listener *listener
	admin    *admin // nil when there is no metrics address

	inFlight  atomic.Int64 // requests, upgraded connections too
	draining  atomic.Bool
	proxyTold atomic.Bool // an untrusted proxy was warned of

	troubled sync.Mutex
	troubles map[string]string // why files are not in force as they are, by their names
	waiting  []string          // words that a restart would put in force
}

// New listens on the gateway's addresses. Its errors are sentences for whoever
// started it.
func New(o Options) (*Gateway, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{o: o, log: o.Log, troubles: make(map[string]string)}
	first, err := g.newReign(o.InForce, nil)
	if err != nil {
		return nil, err
	}
	g.reign.Store(first)
	o.Telemetry.Follow(o.engines()...)
	o.Telemetry.InForce(o.Hash)
	g.public = &http.Server{
		ReadHeaderTimeout:            o.Server.Timeouts.ReadHeader,
		IdleTimeout:                  o.Server.Timeouts.Idle,
		MaxHeaderBytes:               o.Server.MaxHeaderBytes,
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: 250, SendPingTimeout: 30 * time.Second, WriteByteTimeout: writeTimeout},
		Protocols:                    new(http.Protocols),
		DisableGeneralOptionsHandler: true, // OPTIONS * stands under the limits too
		ErrorLog:                     slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	g.public.Protocols.SetHTTP1(true)
	if o.Server.TLS == nil {
		g.public.Protocols.SetUnencryptedHTTP2(true)
	} else {
		g.public.Protocols.SetHTTP2(true)
		certificates, err := newCertificates(o.Server.TLS, o.Log)
		if err != nil {
			return nil, err
		}
		g.public.TLSConfig = certificates.config()
	}
	g.public.Handler = g.desk()

	public, err := listen(o.Server.Listen, "--listen")
	if err != nil {
		return nil, err
	}
	g.listener = &listener{TCPListener: public, patience: o.Server.Timeouts.ReadHeader, silent: g.warnSilent}
	g.listener.believe(o.Server.ProxyProtocol)
	if isItself(o.Server.Upstream, public.Addr()) {
		g.listener.Close()
		return nil, errItself(o.Server.Upstream)
	}
	g.public.ConnState = g.listener.state
	if o.Server.Metrics != "" {
		if g.admin, err = newAdmin(g); err != nil {
			g.listener.Close()
			return nil, err
		}
	}
	return g, nil
}

// Addr is the address that clients come in at.
func (g *Gateway) Addr() net.Addr { return g.listener.Addr() }

// MetricsAddr is the address of health and metrics; nil when there is none.
func (g *Gateway) MetricsAddr() net.Addr {
	if g.admin == nil {
		return nil
	}
	return g.admin.listener.Addr()
}

func (g *Gateway) metricsText() string {
	if g.admin == nil {
		return "off"
	}
	return g.MetricsAddr().String()
}

// Run serves until the context ends and then drains: nil if all went well, also
// when the drain timeout cut requests off or Close was called. It returns when its servers have ended.
func (g *Gateway) Run(ctx context.Context) error {
	defer g.Close()
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	g.public.BaseContext = func(net.Listener) context.Context { return requests }

	ended := make(chan error, 2)
	serving := 1
	go func() { ended <- g.servePublic() }()
	if g.admin != nil {
		serving++
		go func() { ended <- g.admin.serve() }()
	}
	g.log.Info("serving", "listen", g.Addr().String(), "metrics", g.metricsText(), "upstream", g.o.Server.Upstream.Redacted())

	var err error
	select {
	case <-ctx.Done():
		g.drain(cut)
	case err = <-ended:
		serving--
		if errors.Is(err, http.ErrServerClosed) {
			err = nil // Close was called
		} else {
			err = fmt.Errorf("the gateway stopped serving: %w", err)
		}
	}
	g.Close()
	for range serving {
		<-ended
	}
	g.log.Info("stopped")
	return err
}

func (g *Gateway) servePublic() error {
	if g.public.TLSConfig != nil {
		return g.public.ServeTLS(g.listener, "", "")
	}
	return g.public.Serve(g.listener)
}

// Close ends everything at once; requests in flight are lost.
func (g *Gateway) Close() error {
	err := errors.Join(g.public.Close(), g.listener.Close())
	if g.admin != nil {
		err = errors.Join(err, g.admin.close())
	}
	return err
}
