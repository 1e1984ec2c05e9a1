package gateway

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/internal/telemetry"
	"github.com/comporta/comporta/policy"
)

// An exchange is one request and its answer, as the log and the metrics see it.
// It is the http.ResponseWriter of what stands behind the desk, and hangs in the
// request's context.
type exchange struct {
	http.ResponseWriter
	of *reign

	begun    time.Time
	status   int // 0 until there is one
	bytes    int64
	result   telemetry.Result
	denied   string   // the names of the limits that denied, with commas
	shadow   string   // the names of the shadow limits that would have
	over     string   // the names of the limits that mark or demote it
	asked    *url.URL // as limits matched it
	store    string   // which way the verdict fell that the store had no part in; else ""
	path     string   // what the log shows in the path's place, where that holds an identity; else ""
	failure  string   // why there is no answer of the upstream's
	upstream time.Duration
	windowed bool   // the answer goes over HTTP/2: see hurry
	unread   bool   // the request has a body, and nobody bounds how long it takes to come
	body     *body  // its body; nil where it has none
	who      string // the client as a credential proves it; "" where none did
}

// exchanges are used again; what is in them belongs to one request at a time.
var exchanges = sync.Pool{New: func() any { return new(exchange) }}

type exchangeKey struct{}

// exchangeOf is the exchange that a request is part of.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// desk is the outermost handler: it counts, logs, and survives what goes wrong
// further in.
func (g *Gateway) desk() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := g.reign.Load()
		x := exchanges.Get().(*exchange)
		*x = exchange{ResponseWriter: w, begun: now(), result: telemetry.Malformed, of: s, windowed: r.ProtoMajor == 2, unread: r.ContentLength != 0}
		g.inFlight.Add(1)
		g.o.Telemetry.Begin()
		r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
		defer func() {
			broken := recover()
			if broken != nil && broken != http.ErrAbortHandler {
				g.log.Error("a request could not be answered for a fault of the gateway's own", "fault", fmt.Sprint(broken), "at", faultAt())
			}
			if broken != nil {
				x.status = 0
			} else if x.status == 0 {
				x.status = http.StatusOK // the handler wrote nothing: net/http says so
			}
			x.hurry()
			g.leave(x, r)
			if broken != nil {
				panic(http.ErrAbortHandler) // closes the connection, so that no half an answer looks whole
			}
		}()
		s.handler.ServeHTTP(x, r)
	})
}

// leave counts and logs what is over.
func (g *Gateway) leave(x *exchange, r *http.Request) {
	g.o.Telemetry.End(x.result, x.status)
	if g.o.Access != nil {
		g.logAccess(x, r)
	}
	*x = exchange{}
	exchanges.Put(x)
	g.inFlight.Add(-1)
}

// faultAt is the place of the panic that is being recovered, in one line.
func faultAt() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for after := false; ; {
		f, more := frames.Next()
		if after && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		after = after || f.Function == "runtime.gopanic"
		if !more {
			return "unknown"
		}
	}
}

// observe takes from a verdict what the log and the metrics say of it.
func (s *reign) observe(v *policy.Verdict, r *http.Request) {
	s.of.o.Telemetry.Observe(v)
	x := exchangeOf(r.Context())
	x.asked, x.result = r.URL, resultOf(v)
	if v.Fallen != policy.Default {
		x.store = v.Fallen.String()
	}
	if v.Preflight && s.byPath {
		x.path = "(preflight)" // no limit per path applies, but the path may be one that it is for
	}
	for i := range v.Applied {
		a := &v.Applied[i]
		if s.byPath && x.path == "" && isPerPath(a.Limit) {
			x.path = patternOf(a.Limit)
		}
		if x.who == "" && isProved(a.Identity) {
			x.who = cmp.Or(a.Name, a.Identity)
		}
		switch {
		case a.Decision.Allowed, x.result == telemetry.Undecided:
		case a.Marks(), a.Demotes():
			x.over = appendName(x.over, a.Limit.Name)
		case !a.Denies():
			x.shadow = appendName(x.shadow, a.Limit.Name)
		default:
			x.denied = appendName(x.denied, a.Limit.Name)
		}
	}
	s.watchProxies(r)
}

// unsettled takes note of an answer whose cost the store could not settle: it is
// down, which it tells of itself.
func (s *reign) warned(v *policy.Verdict, _ *http.Request) { s.of.o.Telemetry.Warned(v) }

func (s *reign) unsettled(error, *http.Request) { s.of.o.Telemetry.SettleFailed() }

// resultOf is what becomes of a request.
func resultOf(v *policy.Verdict) telemetry.Result {
	switch {
	case v.Refused != nil:
		return telemetry.Refused
	case v.Listed:
		return telemetry.Listed
	case v.Allowed:
		return telemetry.Allowed
	case v.Failed != nil && v.Fallen != policy.Local:
		return telemetry.Undecided
	}
	return telemetry.Denied
}

// isProved says whether an identity is that of a client which showed a valid
// credential.
func isProved(id string) bool {
	return strings.HasPrefix(id, "api_key:") || strings.HasPrefix(id, "user:")
}

// isPerPath says whether a limit counts by a part of the path, alone or with others.
func isPerPath(l *policy.Limit) bool {
	return identity.Has(l.Per, func(s identity.Source) bool { _, is := s.(identity.Path); return is })
}

// patternOf stands in the log for a path that holds somebody's identity.
func patternOf(l *policy.Limit) string {
	if len(l.Match) == 1 {
		return l.Match[0].String()
	}
	return "(one of the patterns of " + l.Name + ")"
}

func appendName(names, name string) string {
	if names == "" {
		return name
	}
	return names + "," + name
}

// peerOf is the address at the other end of the socket, unmapped.
func peerOf(r *http.Request) netip.Addr {
	ap, _ := netip.ParseAddrPort(r.RemoteAddr)
	return ap.Addr().Unmap().WithZone("")
}

// WriteHeader notes the status. While the gateway drains, every answer says that
// its connection ends with it.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		x.status = status
		if x.of.of.draining.Load() {
			x.Header().Set("Connection", "close")
		}
		if x.unread { // net/http reads some of it before it sends the answer
			_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(now().Add(leftTimeout))
		}
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	x.hurry()
	n, err := x.ResponseWriter.Write(p)
	x.rest()
	x.bytes += int64(n)
	return n, err
}

// Hijack is how the proxy switches protocols; what goes over the connection from
// then on is not counted.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err == nil {
		x.status = http.StatusSwitchingProtocols
	}
	return c, rw, err
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// logAccess writes one record.
func (g *Gateway) logAccess(x *exchange, r *http.Request) {
	if !g.o.Access.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	path := x.path
	switch {
	case x.result == telemetry.Malformed:
		path = "(malformed)" // nobody knows what is in it
	case path == "":
		path = cut(x.asked.EscapedPath(), 256) // escaped, it has nothing that a terminal obeys
	}
	rec := slog.NewRecord(x.begun, slog.LevelInfo, "request", 0)
	var room [14]slog.Attr
	attrs := append(room[:0],
		slog.String("client", x.of.clientText(r)),
		slog.String("method", cut(r.Method, 16)),
		slog.String("path", path),
		slog.Int("status", x.status),
		slog.Int64("bytes", x.bytes),
		slog.Int64("us", since(x.begun).Microseconds()),
		slog.String("verdict", x.result.String()),
	)
	if x.who != "" {
		attrs = append(attrs, slog.String("who", cut(x.who, 256)))
	}
	if x.denied != "" {
		attrs = append(attrs, slog.String("limits", x.denied))
	}
	if x.shadow != "" {
		attrs = append(attrs, slog.String("shadow", x.shadow))
	}
	if x.over != "" {
		attrs = append(attrs, slog.String("over", x.over))
	}
	if x.store != "" {
		attrs = append(attrs, slog.String("store", x.store))
	}
	if x.upstream > 0 {
		attrs = append(attrs, slog.Int64("upstream_us", x.upstream.Microseconds()))
	}
	if x.failure != "" {
		attrs = append(attrs, slog.String("failure", x.failure))
	}
	rec.AddAttrs(attrs...)
	_ = g.o.Access.Handle(context.Background(), rec) // there is nowhere to tell of a log that fails
}

// cut bounds what a client makes the log write.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return text[:n] + "..."
}

// clientText is the client's address: the one that limits by address go by.
func (s *reign) clientText(r *http.Request) string {
	q := identity.Request{Peer: peerOf(r), Header: r.Header}
	client := s.address.Client(&q)
	if !client.IsValid() {
		return "unix"
	}
	return client.String()
}
