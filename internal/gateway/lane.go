package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"syscall"
	"time"
)

const (
	// mostHead is how long the head of an upstream's answer may be, in bytes.
	mostHead = 256 << 10
	// mostHeadKept is the room for a request's head that an idle lane keeps: large
	// ones are rare, and lanes many.
	mostHeadKept = 8 << 10
)

var (
	errNotQuiet = errors.New("the upstream ended an idle connection, or spoke on it without being asked")
	errLongHead = errors.New("the head of the upstream's answer is too long")
	errSwitched = errors.New("the upstream switched protocols without being asked to")
)

// A lane is one connection to the upstream, used by one request at a time, whose
// own goroutine writes and reads.
type lane struct {
	of     *lanes
	conn   net.Conn
	raw    syscall.RawConn
	r      *bufio.Reader // of the lane itself
	head   bytes.Buffer  // of the request
	armed  time.Time     // when the deadline was set; zero: there is none
	room   int64         // what the answer's head may still take
	asked  bool          // the request was written
	heard  bool          // something of the answer has come
	unlink func() bool   // takes the lane from the request's context again

	// For step, what it was given and what came of it.
	into    []byte
	n       int
	err     error
	stepped func(uintptr) bool // step, bound once
	hangUp  func()             // closes the connection, bound once
}

func newLane(of *lanes, conn net.Conn) (*lane, error) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &lane{of: of, conn: conn, raw: raw}
	c.r = bufio.NewReader(c)
	c.stepped = c.step
	c.hangUp = func() { _ = conn.Close() }
	return c, nil
}

// ask sends a request that is all head and reads the head of its answer. After
// an error the connection is closed.
func (c *lane) ask(r *http.Request, begun time.Time) (*http.Response, error) {
	c.asked, c.heard, c.room = false, false, mostHead
	c.head.Reset()
	if err := r.Write(&c.head); err != nil {
		c.hangUp()
		return nil, err
	}
	if err := c.arm(begun); err != nil {
		c.hangUp()
		return nil, err
	}
	c.unlink = context.AfterFunc(r.Context(), c.hangUp)
	res, err := c.answer(r)
	if err == nil && !(res.ContentLength >= 0 && res.ContentLength <= int64(c.r.Buffered())) {
		err = c.disarm() // the rest of a body takes what time it takes
	}
	if err != nil {
		c.letGo(false)
		if gone := r.Context().Err(); gone != nil {
			err = gone
		}
		return nil, err
	}
	c.room = math.MaxInt64
	if res.Body == http.NoBody {
		c.letGo(!res.Close)
	} else {
		res.Body = &answerBody{lane: c, from: res.Body, keep: !res.Close}
	}
	return res, nil
}

// answer reads an answer's head, and those of the informational ones before it.
// A status below 100 is for the caller to refuse.
func (c *lane) answer(r *http.Request) (*http.Response, error) {
	for {
		res, err := http.ReadResponse(c.r, r)
		switch {
		case err != nil:
			return nil, err
		case res.StatusCode == http.StatusSwitchingProtocols:
			return nil, errSwitched
		case res.StatusCode >= 200, res.StatusCode < 100:
			return res, nil
		}
		if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.Got1xxResponse != nil {
			if err := trace.Got1xxResponse(res.StatusCode, textproto.MIMEHeader(res.Header)); err != nil {
				return nil, err
			}
		}
	}
}

// arm sets the deadline for the answer's head. It is moved only when an eighth of
// the time is over, and so much later than need be.
func (c *lane) arm(begun time.Time) error {
	most := c.of.patience
	if most <= 0 || !c.armed.IsZero() && begun.Sub(c.armed) < most/8 {
		return nil
	}
	c.armed = begun
	return c.conn.SetDeadline(begun.Add(most + most/8))
}

func (c *lane) disarm() error {
	c.armed = time.Time{}
	return c.conn.SetDeadline(time.Time{})
}

// Read is for the lane's bufio.Reader. The first one for a request also writes it.
func (c *lane) Read(p []byte) (n int, err error) {
	if c.room <= 0 {
		return 0, errLongHead
	}
	if c.asked {
		n, err = c.conn.Read(p)
	} else {
		c.into, c.n, c.err = p, 0, nil
		err = c.raw.Read(c.stepped)
		n, c.into = c.n, nil
		if err == nil {
			err = c.err
		}
	}
	c.heard = c.heard || n > 0
	c.room -= int64(n)
	return n, err
}

// step runs when there may be something to read: first at once, when there must
// not be. An answer that is there before its request, or an end, means that the
// connection can serve no request; who only wrote and read would take it for the
// answer to the next one. It says whether it is done, or waits for more.
func (c *lane) step(fd uintptr) bool {
	n, err := readNow(fd, c.into)
	switch {
	case errors.Is(err, syscall.EAGAIN) && c.asked:
		return false
	case errors.Is(err, syscall.EAGAIN):
		c.asked = true
		_, c.err = c.conn.Write(c.head.Bytes())
		return c.err != nil
	case !c.asked:
		c.err = errNotQuiet
	case err != nil:
		c.err = os.NewSyscallError("read", err)
	case n == 0:
		c.err = io.EOF
	default:
		c.n = n
	}
	return true
}

// stale says whether an error is that of a connection that the upstream had given
// up before it saw the request.
func (c *lane) stale(err error) bool {
	return !c.heard && !errors.Is(err, os.ErrDeadlineExceeded)
}

// letGo ends a request's use of the lane; whole: the connection is in order and
// may serve another one.
func (c *lane) letGo(whole bool) {
	still := c.unlink()
	c.unlink = nil // it holds the request's context
	if still && whole && c.r.Buffered() == 0 {
		if c.head.Cap() > mostHeadKept {
			c.head = bytes.Buffer{}
		}
		c.of.put(c)
		return
	}
	c.hangUp()
}

// answerBody is the body of an answer. At its end it lets the lane go.
type answerBody struct {
	lane *lane // nil when it is let go
	from io.Reader
	keep bool
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if err != nil {
		b.end(b.keep && err == io.EOF)
	}
	return n, err
}

// Close gives the connection up when the body was not read to its end.
func (b *answerBody) Close() error {
	b.end(false)
	return nil
}

func (b *answerBody) end(whole bool) {
	if c := b.lane; c != nil {
		b.lane = nil
		c.letGo(whole)
	}
}
