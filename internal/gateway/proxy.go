package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/internal/telemetry"
)

var (
	errTwice    = errors.New("the upstream ended two connections without an answer")
	errNoStatus = errors.New("the upstream's status is no number from 100 to 999")
)

// checkUpstream says what is wrong with an upstream.
func checkUpstream(u *url.URL) error {
	switch {
	case u == nil:
		return errors.New("there is no upstream: say which API stands behind the gateway, as http://127.0.0.1:9000")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the upstream %q is neither http nor https: write it as http://127.0.0.1:9000", u.Redacted())
	case u.Hostname() == "":
		return fmt.Errorf("the upstream %q has no host: write it as http://127.0.0.1:9000", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return fmt.Errorf("the upstream %q: only a scheme, a host, a port and a path are used", u.Redacted())
	}
	return nil
}

// isItself says whether an upstream is the address that the gateway listens on.
func isItself(u *url.URL, own net.Addr) bool {
	at, ok := own.(*net.TCPAddr)
	if !ok || u.Port() != strconv.Itoa(at.Port) {
		return false
	}
	if u.Hostname() == "localhost" {
		return at.IP.IsLoopback() || at.IP.IsUnspecified()
	}
	ip := net.ParseIP(u.Hostname())
	return ip.Equal(at.IP) || at.IP.IsUnspecified() && ip.IsLoopback()
}

func errItself(u *url.URL) error {
	return fmt.Errorf("the upstream %s is the gateway itself: let one of the two have another port", u)
}

// newProxy is the handler that passes requests on.
//
// The path goes as the limits saw it, behind the upstream's own; the query goes
// as it came. The Host is the client's for an http upstream; for an https one it
// is the upstream's, which its certificate names. Answers whose length is not
// known and event streams are flushed as they come.
func newProxy(s *reign) http.Handler {
	to := s.Server.Upstream
	base, rawBase := strings.TrimSuffix(to.Path, "/"), strings.TrimSuffix(to.EscapedPath(), "/")
	return &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			u := pr.Out.URL
			u.Scheme, u.Host, u.User, u.RawQuery = to.Scheme, to.Host, nil, pr.In.URL.RawQuery
			if base != "" && u.Path != "*" {
				u.RawPath = rawBase + u.EscapedPath()
				u.Path = base + u.Path
			}
			if to.Scheme == "https" {
				pr.Out.Host = to.Host
			}
			dropOddUpgrades(pr.Out.Header)
			s.forward(pr)
		},
		Transport:    s.upstream,
		BufferPool:   new(buffers),
		ErrorHandler: s.answerFailure,
		ErrorLog:     slog.NewLogLogger(s.of.log.Handler(), slog.LevelDebug),
	}
}

// buffers are what bodies are copied through.
type buffers struct{ pool sync.Pool }

// bufferSize is a balance: large bodies take few system calls, small answers do
// not sweep the processor's caches.
const bufferSize = 32 << 10

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }

// upstream is the way to the API: it measures, and says once when the API cannot
// be reached and once when it is back.
type upstream struct {
	http1 *http.Transport
	lanes *lanes // for most requests to an http upstream; nil where there are none
	// h2c speaks HTTP/2 without TLS. gRPC needs it and servers of gRPC speak it
	// without being asked; other requests go over http1. Nil for an https upstream.
	h2c  *http.Transport
	tel  *telemetry.Telemetry
	log  *slog.Logger
	away atomic.Bool

	to    string           // the URL
	waits [2]time.Duration // for a connection, for an answer
}

func newUpstream(g *Gateway, server *config.Server) *upstream {
	limits := server.Timeouts
	dialer := &net.Dialer{Timeout: limits.Dial, KeepAlive: 30 * time.Second}
	transport := func() *http.Transport {
		return &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    limits.Dial,
			ResponseHeaderTimeout:  limits.ResponseHeader,
			ExpectContinueTimeout:  time.Second,
			IdleConnTimeout:        time.Minute,
			MaxIdleConnsPerHost:    mostIdle,
			MaxResponseHeaderBytes: mostHead,
			DisableCompression:     true, // bodies pass as they are
			Protocols:              new(http.Protocols),
		}
	}
	u := &upstream{
		http1: transport(), lanes: newLanes(server.Upstream, dialer, limits.ResponseHeader),
		tel: g.o.Telemetry, log: g.log,
		to: server.Upstream.String(), waits: [2]time.Duration{limits.Dial, limits.ResponseHeader},
	}
	u.http1.Protocols.SetHTTP1(true)
	if server.Upstream.Scheme == "https" {
		u.http1.Protocols.SetHTTP2(true)
		return u
	}
	u.h2c = transport()
	u.h2c.Protocols.SetUnencryptedHTTP2(true)
	return u
}

// serves says whether the way is the one that another server's words ask for.
func (u *upstream) serves(server *config.Server) bool {
	return u.to == server.Upstream.String() && u.waits == [2]time.Duration{server.Timeouts.Dial, server.Timeouts.ResponseHeader}
}

// retire closes what is idle, now and, as requests in flight end, later.
func (u *upstream) retire() {
	u.http1.CloseIdleConnections()
	if u.h2c != nil {
		u.h2c.CloseIdleConnections()
	}
	if u.lanes != nil {
		u.lanes.close()
	}
}

// RoundTrip is part of http.RoundTripper.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	begun := now()
	res, err := u.pass(r, begun)
	if err == nil && (res.StatusCode < 100 || res.StatusCode > 999) { // net/http panics when it is to write one
		res.Body.Close()
		res, err = nil, errNoStatus
	}
	took := since(begun)
	if x := exchangeOf(r.Context()); x != nil {
		x.upstream = took
	}
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" && r.Context().Err() == nil && !u.away.Swap(true) {
			u.log.Warn("the upstream cannot be reached", "error", err)
		}
		return nil, err
	}
	u.tel.UpstreamAnswered(took)
	if u.away.Load() && u.away.Swap(false) {
		u.log.Info("the upstream answers again")
	}
	return res, nil
}

// pass chooses the way.
func (u *upstream) pass(r *http.Request, begun time.Time) (*http.Response, error) {
	switch {
	case u.h2c != nil && r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
		return atMostTwice(u.h2c, r)
	case u.lanes != nil && u.lanes.takes(r):
		return u.lanes.roundTrip(r, begun)
	}
	return atMostTwice(u.http1, r)
}

// atMostTwice sends a request, and once more at most where http.Transport holds
// that the first connection was stale. By itself it goes on through every idle
// one, so that a request that makes the upstream hang up, let through once by
// the limits, would be many to the upstream. It never repeats one with a body.
//
// The third connection is closed before anything is written on it; HTTP/2, whose
// connections serve others too, looks at the context before it writes.
func atMostTwice(t *http.Transport, r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		return t.RoundTrip(r)
	}
	ctx, giveUp := context.WithCancelCause(r.Context()) // which ends with r's: an answer's body needs it
	tries := 0
	res, err := t.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			if tries++; tries <= 2 {
				return
			}
			giveUp(errTwice)
			if t.Protocols.HTTP1() && !speaksHTTP2(got.Conn) {
				got.Conn.Close()
			}
		},
	})))
	if err != nil && tries > 2 {
		err = errTwice
	}
	return res, err
}

func speaksHTTP2(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}

// answerFailure answers in the upstream's place. The request is the outgoing one,
// which has the origin of the one that came in.
func (s *reign) answerFailure(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	var tooLarge *http.MaxBytesError
	var timeout net.Error
	switch {
	case errors.As(err, &tooLarge):
		x.failure = "body_too_large"
		s.answerTooLarge(w, r, tooLarge.Limit)
	case errors.Is(err, errSlowBody):
		x.failure = "slow_body"
		s.problem(w, r, errSlowBody.Status, errSlowBody.Detail)
	case r.Context().Err() != nil || errors.Is(err, context.Canceled):
		s.failed(x, telemetry.Left)
		s.problem(w, r, http.StatusBadGateway, "The client hung up.") // which nobody reads; the log does
	case errors.Is(err, errBrokenBody):
		x.failure = "broken_body"
		s.problem(w, r, errBrokenBody.Status, errBrokenBody.Detail)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		s.failed(x, telemetry.TimedOut)
		s.problem(w, r, http.StatusGatewayTimeout, "The upstream did not answer in time.")
	default:
		s.failed(x, telemetry.Unreachable)
		s.problem(w, r, http.StatusBadGateway, "The upstream could not be reached.")
	}
}

func (s *reign) failed(x *exchange, f telemetry.Failure) {
	x.failure = f.String()
	s.of.o.Telemetry.UpstreamFailed(f)
}
