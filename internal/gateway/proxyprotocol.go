package gateway

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/comporta/comporta/internal/telemetry"
)

// believe sets whose connections begin with the PROXY protocol.
func (l *listener) believe(peers []netip.Prefix) { l.believed.Store(&peers) }

// believes says whether a peer's connections do.
func (l *listener) believes(peer net.Addr) bool {
	at, ok := peer.(*net.TCPAddr)
	peers := l.believed.Load()
	if !ok || peers == nil {
		return false
	}
	address := at.AddrPort().Addr().Unmap().WithZone("")
	return slices.ContainsFunc(*peers, func(p netip.Prefix) bool { return p.Contains(address) })
}

// A proxied connection comes from a peer that says first, by the PROXY protocol
// (version 1 or 2), for whom it speaks. One that begins otherwise is closed:
// whoever may leave the words out lets its own clients say them.
//
// They are read by whoever first asks for the address or for data, which is
// net/http in a goroutine of the connection's own, and within the time that a
// request's header may take.
type proxied struct {
	*proxyproto.Conn
	socket *conn
	silent func() // told of where it begins otherwise
}

func newProxied(c *conn, patience time.Duration, silent func()) *proxied {
	return &proxied{proxyproto.NewConn(c, proxyproto.WithPolicy(proxyproto.REQUIRE), proxyproto.SetReadHeaderTimeout(patience)), c, silent}
}

func (c *proxied) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, proxyproto.ErrNoProxyProtocol) {
		c.silent()
	}
	return n, err
}

// warnSilent tells whoever wonders why a peer gets no answers.
func (g *Gateway) warnSilent() {
	g.o.Telemetry.Warn(telemetry.SilentProxy, "", "a peer of server.proxy_protocol began a connection without the PROXY protocol, and it was closed: "+
		"let it (its health checks, too) send the protocol, or take it off the list")
}

// RemoteAddr is the client's address; the socket's where the peer speaks for
// itself (LOCAL), does not know (UNKNOWN), or tells of no TCP over IP.
func (c *proxied) RemoteAddr() net.Addr {
	if client, ok := c.Conn.RemoteAddr().(*net.TCPAddr); ok {
		return client
	}
	return c.socket.RemoteAddr()
}

// CloseWrite is how net/http ends an answer to who is still sending.
func (c *proxied) CloseWrite() error { return c.socket.CloseWrite() }
