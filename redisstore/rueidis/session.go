package rueidis

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// maxCalls may be without a reply at the same time, calls that were given up
	// among them: what a server that hangs costs in memory.
	maxCalls = 4096
	// maxCalm is as many as surely find a place in rueidis' line (DefaultRingScale).
	maxCalm = 1 << rueidis.DefaultRingScale / 2
)

// A session is a rueidis client that is closed when it was replaced and its last
// call has ended: to close it earlier would break those.
type session struct {
	client  rueidis.Client
	users   atomic.Int64 // its calls, and one until it is replaced
	making  atomic.Int32 // connections that are being made
	trouble atomic.Bool  // a connection or a call failed, and no reply came since
}

// enter says that a call begins; false where the session has ended.
func (s *session) enter() bool {
	for {
		n := s.users.Load()
		if n == 0 {
			return false
		}
		if s.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave says that a call has ended.
func (s *session) leave() {
	if s.users.Add(-1) == 0 {
		go s.client.Close() // it may wait for a server
	}
}

// do sends a command for a call that has entered, and leaves when rueidis has
// done with it.
//
// rueidis keeps to a deadline as long as it has its connections. While it makes
// one it does not: callers wait for the one among them who makes it, in his time.
// Nor does it while its line is full.
func (s *session) do(ctx context.Context, client rueidis.Client, cmd rueidis.Completed) (any, error) {
	users := s.users.Load()
	if users > maxCalls {
		s.leave()
		return nil, errBusy
	}
	if users > maxCalm || s.making.Load() > 0 || s.trouble.Load() {
		return s.doApart(ctx, client, cmd)
	}
	result := client.Do(ctx, cmd)
	s.leave()
	return s.reply(result)
}

// doApart lets rueidis work in a goroutine, which goes on when ctx has ended: a
// connection that takes longer to make than one call has is there for the next.
// The goroutine ends when the connection gives up (ConnWriteTimeout and
// Dialer.Timeout).
func (s *session) doApart(ctx context.Context, client rueidis.Client, cmd rueidis.Completed) (any, error) {
	done := make(chan rueidis.RedisResult, 1)
	go func() {
		done <- client.Do(unhurried{ctx}, cmd)
		s.leave()
	}()
	select {
	case result := <-done:
		return s.reply(result)
	case <-ctx.Done():
		s.trouble.Store(true)
		return nil, ctx.Err()
	}
}

// reply reads a result and notes whether one came.
func (s *session) reply(r rueidis.RedisResult) (any, error) {
	if failed := r.NonRedisError() != nil; failed != s.trouble.Load() {
		s.trouble.Store(failed)
	}
	return reply(r)
}

// unhurried is a context without deadline or end, for connections to be made
// under; only Err tells that the call was given up, so that a command that was
// not sent until then never is.
type unhurried struct{ context.Context }

func (unhurried) Done() <-chan struct{} { return nil }

func (unhurried) Deadline() (deadline time.Time, ok bool) { return }
