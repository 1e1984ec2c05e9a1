package rueidis

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
)

// dial makes a connection and counts it as being made until the server's first
// word on it, or its end. A server's path, which begins with "/", is that of a
// socket.
func (s *session) dial(ctx context.Context, server string, dialer *net.Dialer, secure *tls.Config) (net.Conn, error) {
	s.making.Add(1)
	network := "tcp"
	if strings.HasPrefix(server, "/") {
		network = "unix"
	}
	var c net.Conn
	var err error
	if secure != nil {
		c, err = (&tls.Dialer{NetDialer: dialer, Config: secure}).DialContext(ctx, network, server)
	} else {
		c, err = dialer.DialContext(ctx, network, server)
	}
	if err != nil {
		s.making.Add(-1)
		return nil, err
	}
	return &conn{Conn: c, session: s}, nil
}

// A conn tells its session when it is made and when it ends.
type conn struct {
	net.Conn
	session *session
	made    atomic.Bool
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.settle()
	}
	return n, err
}

// Close is what rueidis calls before it makes another connection.
func (c *conn) Close() error {
	c.session.trouble.Store(true)
	c.settle()
	return c.Conn.Close()
}

func (c *conn) settle() {
	if !c.made.Load() && c.made.CompareAndSwap(false, true) {
		c.session.making.Add(-1)
	}
}
