package rueidis

import (
	"context"
	"errors"
	"time"

	"github.com/comporta/comporta/redisstore"
)

// Between two attempts to open a session lies a rest, that doubles while attempts
// follow one another: a thousand instances must not storm a cluster that fails.
const (
	shortRest = 100 * time.Millisecond
	longRest  = 500 * time.Millisecond
)

// An attempt to open a session.
type attempt struct {
	done    chan struct{} // closed when it is over
	session *session      // or
	err     error
}

// session gives the one of now, to be left by the caller. Where there is none, it
// waits for the attempt to open one, or fails as the last one did.
func (c *Client) session(ctx context.Context) (*session, error) {
	for {
		s := c.current.Load()
		if s == nil {
			var err error
			if s, err = c.await(ctx); err != nil {
				return nil, err
			}
		}
		if s.enter() {
			return s, nil
		}
	}
}

// await waits for a first session.
func (c *Client) await(ctx context.Context) (*session, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	if s := c.current.Load(); s != nil {
		c.mu.Unlock()
		return s, nil
	}
	c.wantLocked()
	a := c.attempt
	c.mu.Unlock()
	select {
	case <-a.done:
		return a.session, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// doubt asks for a new session where an error may mean that the old one has the
// wrong servers. rueidis makes broken connections anew by itself, but to the
// same place: it never leaves a server that became a replica, and asks after a
// cluster's new primary up to a second late.
func (c *Client) doubt(s *session, err error) {
	var server redisstore.ServerError
	switch {
	case errors.As(err, &server):
		if server.Code() != "READONLY" {
			return
		}
	case c.kind == redisstore.Single, errors.Is(err, context.Canceled), errors.Is(err, errBusy):
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current.Load() == s {
		c.wantLocked()
	}
}

// wantLocked sees to it that there is a new session soon.
func (c *Client) wantLocked() {
	switch {
	case c.resting:
		c.wanted = true
	case c.attempt.isOver():
		c.openLocked()
	}
}

func (a *attempt) isOver() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// openLocked begins an attempt.
func (c *Client) openLocked() {
	a := &attempt{done: make(chan struct{})}
	c.attempt, c.wanted = a, false
	c.rest = min(max(2*c.rest, shortRest), longRest)
	go func() {
		s, err := open(c.option)
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case err != nil:
			a.err = err
		case c.closed:
			s.leave()
			a.err = errClosed
		default:
			a.session = s
			if c.Cluster() {
				s.greet()
			}
			if old := c.current.Swap(a.session); old != nil {
				old.leave()
			}
		}
		c.resting = true
		time.AfterFunc(c.rest, c.rested)
		close(a.done)
	}()
}

// rested begins the attempt that was asked for during the rest. Where none was,
// the next rest is short again.
func (c *Client) rested() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resting = false
	switch {
	case c.closed:
	case c.wanted:
		c.openLocked()
	default:
		c.rest = 0
	}
}
