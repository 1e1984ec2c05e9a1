package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// writeTimeout is how long one write to a client may take. There is no bound on
// a whole answer, which may be a stream without end.
const writeTimeout = time.Minute

// listen listens on an address, host:port. Its errors are sentences, and name the
// flag that chooses another address.
func listen(address, flag string) (*net.TCPListener, error) {
	var c net.ListenConfig
	c.SetMultipathTCP(false) // whose listeners take no socket filter: see refuseNew
	l, err := c.Listen(context.Background(), "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: another program has the port; choose another one, with %s or in the policy file", address, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("cannot listen on %s: the system does not allow it (ports under 1024 want a privilege)", address)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s: %w", address, cause(err))
	}
	return l.(*net.TCPListener), nil
}

// cause is what is left of a network error without the words around it.
func cause(err error) error {
	if op := new(net.OpError); errors.As(err, &op) {
		return op.Err
	}
	return err
}

// A listener gives connections that bound each write, and knows how many of
// them are in which state.
type listener struct {
	*net.TCPListener
	once  sync.Once
	ended error
	conns [http.StateClosed + 1]atomic.Int64

	believed atomic.Pointer[[]netip.Prefix] // who says first for whom it speaks
	silent   func()                         // told of peers that should begin with the PROXY protocol and do not
	patience time.Duration                  // with the words of that
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	made := &conn{TCPConn: c}
	made.state.Store(unknown)
	if l.believes(c.RemoteAddr()) {
		return newProxied(made, l.patience, l.silent), nil
	}
	return made, nil
}

// Close may be called many times; later calls say what the first did.
func (l *listener) Close() error {
	l.once.Do(func() { l.ended = l.TCPListener.Close() })
	return l.ended
}

// state is http.Server's ConnState.
func (l *listener) state(nc net.Conn, s http.ConnState) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	if p, ok := nc.(*proxied); ok {
		nc = p.socket
	}
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	if before := c.state.Swap(int32(s)); before != unknown {
		l.conns[before].Add(-1)
	}
	l.conns[s].Add(1)
}

// count is how many connections are in a state.
func (l *listener) count(s http.ConnState) int64 { return l.conns[s].Load() }

// A conn bounds each write to writeTimeout, by a deadline that is moved at most
// once in an eighth of that time. What net/http does to the write deadline, which
// is to clear it, is left out.
type conn struct {
	*net.TCPConn
	state atomic.Int32 // an http.ConnState, or unknown
	armed atomic.Int64 // when the deadline was moved, in Unix nanoseconds
}

// unknown is the state of a connection of which http.Server has said nothing yet.
const unknown = -1

func (c *conn) Write(p []byte) (int, error) {
	t := now()
	if t.UnixNano()-c.armed.Load() > int64(writeTimeout/8) {
		c.armed.Store(t.UnixNano())
		if err := c.TCPConn.SetWriteDeadline(t.Add(writeTimeout)); err != nil {
			return 0, err
		}
	}
	return c.TCPConn.Write(p)
}

// ReadFrom goes through Write, whose deadline moves; the system's own copying
// would end at the one that was set last.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, r)
}

// SetWriteDeadline leaves the deadline that Write keeps.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	c.armed.Store(0)
	return c.TCPConn.SetWriteDeadline(t)
}

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
