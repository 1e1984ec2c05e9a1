package client

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A rig is a real HTTP server and a real transport to it, over pipes, in a bubble.
type rig struct {
	t      *testing.T
	wire   *http.Transport
	listen pipes
	server *http.Server

	mu    sync.Mutex
	began time.Time
	came  []time.Duration // when requests came
	hosts []string
}

// inBubble runs f with a server whose answers handler gives, numbered from 1. What
// a goroutine leaves behind fails the bubble.
func inBubble(t *testing.T, handler func(n int, w http.ResponseWriter, r *http.Request), f func(s *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &rig{t: t, listen: pipes{make(chan net.Conn), make(chan struct{})}, began: time.Now()}
		s.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(s.note(r), w, r) })}
		s.wire = &http.Transport{
			DialContext:           func(ctx context.Context, _, _ string) (net.Conn, error) { return s.listen.dial(ctx) },
			ExpectContinueTimeout: time.Second, MaxIdleConnsPerHost: 2000,
		}
		go s.server.Serve(s.listen)
		defer func() {
			s.wire.CloseIdleConnections()
			s.server.Close()
			synctest.Wait()
		}()
		f(s)
	})
}

func (s *rig) note(r *http.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came = append(s.came, time.Since(s.began))
	s.hosts = append(s.hosts, r.Host)
	return len(s.came)
}

// arrivals are when requests came so far.
func (s *rig) arrivals() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Duration(nil), s.came...)
}

// client is a program's client, whose requests go to the rig.
func (s *rig) client(o Options) (*http.Client, *Transport) {
	if o.Transport == nil {
		o.Transport = s.wire
	}
	t := New(o)
	return &http.Client{Transport: t}, t
}

// get gets a URL, to the end of its body.
func (s *rig) get(c *http.Client, url string) (*http.Response, string) {
	s.t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		s.t.Error(err)
		return &http.Response{}, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Error(err)
	}
	return resp, string(b)
}

// want fails unless requests came then, exactly.
func (s *rig) want(at ...time.Duration) {
	s.t.Helper()
	came := s.arrivals()
	if len(came) != len(at) {
		s.t.Fatalf("requests came at %v; want %v", came, at)
	}
	for i := range at {
		if came[i] != at[i] {
			s.t.Fatalf("requests came at %v; want %v", came, at)
		}
	}
}

// pipes is a listener of net.Pipe connections.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
}

func (p pipes) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.ended:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.ended)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.IPAddr{} }

// steady are options without chance, so that times are exact.
func steady() Options { return Options{Backoff: Backoff{Jitter: NoJitter}} }

// tell is a handler that refuses the first requests with what says, then answers.
func tell(refusals int, says func(http.Header)) func(int, http.ResponseWriter, *http.Request) {
	return func(n int, w http.ResponseWriter, _ *http.Request) {
		if n <= refusals {
			says(w.Header())
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, "slow down")
			return
		}
		io.WriteString(w, "well")
	}
}

func retryIn(value string) func(http.Header) {
	return func(h http.Header) { h.Set("Retry-After", value) }
}
