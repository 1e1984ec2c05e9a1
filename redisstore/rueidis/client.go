package rueidis

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta/redisstore"
	"github.com/redis/rueidis"
)

// A Client is a [redisstore.Client] and [redisstore.Nodes]. It is safe for
// concurrent use.
type Client struct {
	option  rueidis.ClientOption
	kind    redisstore.Kind
	current atomic.Pointer[session] // nil before the first one and after Close
	keyless atomic.Uint32           // calls without a key: each has a slot by its number

	mu      sync.Mutex
	closed  bool
	attempt *attempt      // the last to open a session
	rest    time.Duration // after it, before the next
	resting bool
	wanted  bool // another one, when the rest is over
}

var (
	errClosed = errors.New("redisstore: the client is closed")
	errBusy   = errors.New("redisstore: too many calls wait for replies")
)

// Open makes a client of an address and begins to connect. It does not wait: a
// server that does not answer yet is no error here but one of each call. The
// errors are those of the files that the address names.
//
// The client finds its way again by itself, within a second after the servers
// have: it opens its connections anew where a connection breaks, a server says
// READONLY, or a failover moved the primary.
func Open(a *redisstore.Address, o Options) (*Client, error) {
	option, err := options(a, o)
	if err != nil {
		return nil, err
	}
	c := &Client{option: option, kind: a.Kind}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.openLocked()
	return c, nil
}

// Do implements [redisstore.Client]. Calls that run at the same time share
// round trips. A call is given up when ctx ends, and fails at once while there is
// no connection and the last attempt to make one failed.
//
// Give ctx a deadline: its being cancelled before that is not noticed by a call
// that is alone on its connection. The list of args may be used again at once, but
// the bytes of its strings may still be sent for Options.Silence after ctx ended.
func (c *Client) Do(ctx context.Context, key string, args ...string) (any, error) {
	if err := check(args); err != nil {
		return nil, err
	}
	s, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	cmd := s.client.B().Arbitrary(args...).Build()
	switch {
	case key != "":
		cmd = cmd.SetSlot(key)
	case c.Cluster():
		cmd = cmd.SetSlot(strconv.Itoa(int(c.keyless.Add(1))))
	}
	reply, err := s.do(ctx, s.client, cmd)
	if err != nil {
		c.doubt(s, err)
	}
	return reply, err
}

// check finds what rueidis would panic at.
func check(args []string) error {
	if len(args) == 0 || args[0] == "" || strings.HasSuffix(strings.ToUpper(args[0]), "SUBSCRIBE") {
		return errors.New("redisstore: this is no command that has one reply")
	}
	return nil
}

// Cluster implements [redisstore.Client].
func (c *Client) Cluster() bool { return c.kind == redisstore.Cluster }

// Close implements [redisstore.Client]. Calls that run may end.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	if s := c.current.Swap(nil); s != nil {
		s.leave()
	}
}
