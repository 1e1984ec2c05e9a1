package redistest

import (
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// A Proxy stands between clients and a server. Its methods are safe for
// concurrent use.
type Proxy struct {
	Addr string

	to  atomic.Pointer[string]
	cut atomic.Pointer[string]
}

// StartProxy starts a proxy that leads to an address.
func StartProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &Proxy{Addr: l.Addr().String()}
	p.Lead(to)
	p.Cut("")
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.join(client)
		}
	}()
	return p
}

// Lead makes new connections lead to another address. Those that are stay.
func (p *Proxy) Lead(to string) { p.to.Store(&to) }

// Cut ends each connection on which a request has this word in it, where the
// reply would come: the server has carried the request out, and the client does
// not hear of it. "" ends none.
func (p *Proxy) Cut(word string) { p.cut.Store(&word) }

// join passes on what client and server say until one of them ends.
func (p *Proxy) join(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", *p.to.Load())
	if err != nil {
		return
	}
	defer server.Close()
	var doomed atomic.Bool
	go func() {
		defer server.Close()
		_ = pass(server, client, func(request string) bool {
			if word := *p.cut.Load(); word != "" && strings.Contains(request, word) {
				doomed.Store(true)
			}
			return true
		})
	}()
	_ = pass(client, server, func(string) bool { return !doomed.Load() })
}

// pass copies as long as there is something to copy that may pass.
func pass(to io.Writer, from io.Reader, may func(text string) bool) error {
	text := make([]byte, 64<<10)
	for {
		n, err := from.Read(text)
		if err != nil || !may(string(text[:n])) {
			return err
		}
		if _, err := to.Write(text[:n]); err != nil {
			return err
		}
	}
}
