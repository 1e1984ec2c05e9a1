package redistest

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// A Proxy stands between clients and a server. Its methods are safe for
// concurrent use.
type Proxy struct {
	Addr string

	to  atomic.Pointer[string]
	cut atomic.Bool
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

// Cut says whether connections end where a reply would come: the server has
// carried the command out, and the client does not hear of it. The first reply
// on a connection, to the greeting, always comes.
func (p *Proxy) Cut(cut bool) { p.cut.Store(cut) }

// join passes on what client and server say until one of them ends.
func (p *Proxy) join(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", *p.to.Load())
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		server.Close()
	}()
	reply := make([]byte, 64<<10)
	for greeted := false; ; greeted = true {
		n, err := server.Read(reply)
		if err != nil || greeted && p.cut.Load() {
			return
		}
		if _, err := client.Write(reply[:n]); err != nil {
			return
		}
	}
}
