package client

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// http2 is a real server of HTTP/2 over TLS on this machine.
func http2(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *http.Transport) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, server.Client().Transport.(*http.Transport)
}

// Over HTTP/2 a refusal is waited for and an upload is sent again whole, as over
// HTTP/1.1; one connection carries it all.
func TestHTTP2(t *testing.T) {
	var n atomic.Int64
	var remotes [2]string
	server, wire := http2(t, func(w http.ResponseWriter, r *http.Request) {
		k := n.Add(1)
		remotes[k-1] = r.RemoteAddr + " " + r.Proto
		if k == 1 {
			w.Header().Set("Retry-After-Ms", "50")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, strings.Repeat("slow down ", 1000))
			return
		}
		io.Copy(w, r.Body)
	})
	tr := New(Options{Transport: wire, RetryRefused: true, Backoff: Backoff{Base: time.Millisecond}})
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
	began := time.Now()
	resp, err := (&http.Client{Transport: tr}).Post(server.URL, "text/plain", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(b, data) || time.Since(began) < 50*time.Millisecond || n.Load() != 2 || tr.Stats().Resent != 0 {
		t.Error(len(b), err, time.Since(began), n.Load())
	}
	if remotes[0] != remotes[1] || !strings.HasSuffix(remotes[0], "HTTP/2.0") {
		t.Error("not over one connection of HTTP/2:", remotes)
	}
}

// A stream of HTTP/2 that the server resets before it answers is a lost request.
func TestHTTP2Reset(t *testing.T) {
	var n atomic.Int64
	server, wire := http2(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%2 == 1 {
			panic(http.ErrAbortHandler)
		}
	})
	c := &http.Client{Transport: New(Options{Transport: wire, RetryRefused: true, Backoff: Backoff{Base: time.Millisecond}})}
	resp, err := c.Get(server.URL)
	if err != nil || resp.StatusCode != 200 || n.Load() != 2 {
		t.Fatal(resp, err, n.Load())
	}
	resp.Body.Close()
	if _, err := c.Post(server.URL, "text/plain", strings.NewReader("once")); err == nil || n.Load() != 3 {
		t.Error("a POST that was lost was sent again:", err, n.Load())
	}
}

// What net/http sends anew by itself, when a connection that was kept turns out
// dead, is counted.
func TestResent(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 2 {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
		}
	}))
	defer server.Close()
	wire := &http.Transport{}
	defer wire.CloseIdleConnections()
	tr := New(Options{Transport: wire})
	for range 2 {
		resp, err := (&http.Client{Transport: tr}).Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if stats := tr.Stats(); stats.Attempts != 2 || stats.Resent != 1 || n.Load() != 3 {
		t.Error(stats, n.Load())
	}
}

// What would fail again is not tried again: a certificate that nobody vouches for,
// a server that does not speak the protocol.
func TestHopelessConnections(t *testing.T) {
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	secure := httptest.NewUnstartedServer(handler)
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewUnstartedServer(handler)
	plain.Config.ErrorLog = quiet
	plain.Start()
	defer plain.Close()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	go func() {
		for conn, err := other.Accept(); err == nil; conn, err = other.Accept() {
			conn.Read(make([]byte, 4096))
			io.WriteString(conn, "SSH-2.0-OpenSSH_9.6\r\n")
			conn.Close()
		}
	}()
	for _, url := range []string{secure.URL, strings.Replace(plain.URL, "http:", "https:", 1), "http://" + other.Addr().String()} {
		wire := &http.Transport{}
		tr := New(Options{Transport: wire, Backoff: Backoff{Base: time.Millisecond}})
		resp, err := (&http.Client{Transport: tr}).Get(url)
		if err == nil {
			resp.Body.Close()
		}
		if stats := tr.Stats(); err == nil || stats.Attempts != 1 || stats.Abandoned[ReasonFinal] != 1 {
			t.Error(url, err, stats)
		}
		wire.CloseIdleConnections()
	}
}

// A connection that is refused may be there a moment later.
func TestRefusedConnection(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL
	server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
	tr := New(Options{Transport: &http.Transport{}, Backoff: Backoff{Base: time.Millisecond}})
	if _, err := tr.RoundTrip(req); err == nil || tr.Stats().Attempts != 3 {
		t.Error(err, tr.Stats())
	}
}

// quiet is for servers that are meant to fail.
var quiet = log.New(io.Discard, "", 0)
