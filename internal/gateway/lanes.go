package gateway

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	mostIdle  = 1024 // connections that are kept for later
	idleSweep = 30 * time.Second
)

// lanes is the short way to an upstream that speaks HTTP/1.1 without TLS, for
// requests that are all head and may be sent twice. http.Transport has two
// goroutines on each connection, through which every request and every answer
// is handed; here the request's own goroutine writes and reads, which saves
// about a sixth of what a proxied request costs.
type lanes struct {
	address  string
	dialer   *net.Dialer
	patience time.Duration // until the answer's head is there; 0: for ever

	mu       sync.Mutex
	idle     []*lane // the one used last is the last
	fewest   int     // how many were idle at any time since the last sweep
	sweeping bool
	closed   bool // no lane is kept any more
}

// newLanes is nil where there are none. A name that is not ASCII is for
// http.Transport, which knows how to look it up.
func newLanes(to *url.URL, dialer *net.Dialer, patience time.Duration) *lanes {
	beyondASCII := func(c rune) bool { return c >= utf8.RuneSelf }
	if !canReadNow || to.Scheme != "http" || strings.ContainsFunc(to.Hostname(), beyondASCII) {
		return nil
	}
	port := to.Port()
	if port == "" {
		port = "80"
	}
	return &lanes{address: net.JoinHostPort(to.Hostname(), port), dialer: dialer, patience: patience}
}

// takes says whether a request can go this way.
func (l *lanes) takes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return false
	}
	return r.Body == nil && len(r.Header["Upgrade"]) == 0 && len(r.Header["Expect"]) == 0
}

// roundTrip is as http.RoundTripper has it. A connection that the upstream gave
// up while it was idle costs another attempt, on a new one, and no more: were a
// request that makes the upstream hang up tried on every idle connection, one
// that limits let through would be many to the upstream.
func (l *lanes) roundTrip(r *http.Request, begun time.Time) (*http.Response, error) {
	if c := l.get(); c != nil {
		res, err := c.ask(r, begun)
		if err == nil || r.Context().Err() != nil || !c.stale(err) {
			return res, err
		}
	}
	c, err := l.dial(r.Context())
	if err != nil {
		return nil, err
	}
	return c.ask(r, now())
}

func (l *lanes) dial(ctx context.Context) (*lane, error) {
	conn, err := l.dialer.DialContext(ctx, "tcp", l.address)
	if err != nil {
		return nil, err
	}
	return newLane(l, conn)
}

// get is an idle lane, or nil.
func (l *lanes) get() *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.idle) - 1
	if last < 0 {
		return nil
	}
	c := l.idle[last]
	l.idle[last] = nil
	l.idle = l.idle[:last]
	l.fewest = min(l.fewest, last)
	return c
}

// put keeps a lane for later.
func (l *lanes) put(c *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.idle) == mostIdle {
		c.hangUp()
		return
	}
	l.idle = append(l.idle, c)
	if !l.sweeping {
		l.sweeping, l.fewest = true, 0
		time.AfterFunc(idleSweep, l.sweep)
	}
}

// close closes the idle lanes, and those in use as they come back.
func (l *lanes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, c := range l.idle {
		c.hangUp()
	}
	l.idle, l.fewest = nil, 0
}

// sweep closes the lanes that nothing has used since the last sweep: as the last
// one in is the first one out, they lie at the bottom.
func (l *lanes) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.idle[:l.fewest] {
		c.hangUp()
	}
	l.idle = slices.Delete(l.idle, 0, l.fewest)
	l.fewest = len(l.idle)
	if l.sweeping = len(l.idle) > 0; l.sweeping {
		time.AfterFunc(idleSweep, l.sweep)
	}
}
