package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// callsOut is how many calls may be out before a request waits for company:
	// whatever queued while they were out goes together in the next. No timer waits
	// for a batch to fill.
	callsOut = 2
	// slow is for how long no call was sent when another may go out all the same, up
	// to callsMost: a server that is far away is asked more often at a time.
	slow      = int64(500 * time.Microsecond)
	callsMost = 16
)

// A lane sends requests to one server, or in a cluster those of some slots, in
// calls that they share.
type lane struct {
	store *Store

	mu    sync.Mutex
	queue []*request
	// background is what nobody waits for. It goes along, or by itself, and has no
	// deadline in line: it is bounded by the keys that have leases.
	background []*request
	calls      int   // out now
	last       int64 // when the last was sent
	spare      []*call
}

// ask puts a request in line and waits for its decisions, for the end of ctx or
// for the store's deadline. Who happens to send a call for all stays until it ends,
// unless ctx has a deadline.
func (l *lane) ask(ctx context.Context, r *request) error {
	l.mu.Lock()
	l.queue = append(l.queue, r)
	c := l.dueLocked()
	l.mu.Unlock()
	if c != nil {
		if _, ends := ctx.Deadline(); ends {
			go l.send(c)
		} else {
			l.send(c)
		}
	}
	if ctx.Done() == nil {
		<-r.done
		return r.err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		l.leave(r)
		return &abandoned{ctx.Err()}
	}
}

// leave takes a request out of line, unless it is in a call already.
func (l *lane) leave(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, r); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
}

// dueLocked is the call that may go out now, nil where none may.
func (l *lane) dueLocked() *call {
	if now := monotonic(); l.calls < callsOut || l.calls < callsMost && now-l.last > slow {
		return l.pickLocked(now)
	}
	return nil
}

// put puts a request in line that nobody waits for: it goes with the next call, or
// with flush.
func (l *lane) put(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.background = append(l.background, r)
}

// flush lets go what nobody waits for, if a call may.
func (l *lane) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.background) == 0 {
		return
	}
	if c := l.dueLocked(); c != nil {
		go l.send(c)
	}
}

// abandoned is the error of a request whose caller stopped waiting for it: it may
// be spent, and belongs to its call.
type abandoned struct{ error }

func (e *abandoned) Unwrap() error { return e.error }

// pickLocked makes a call of what waits, as much as goes together; nil where nothing
// waits.
func (l *lane) pickLocked(now int64) *call {
	if len(l.queue)+len(l.background) == 0 {
		return nil
	}
	var c *call
	if n := len(l.spare); n > 0 {
		c, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		c = newCall(l.store)
	}
	c.reset(l.store.about(now))
	first, entered := l.background, now
	if len(l.queue) > 0 {
		first, entered = l.queue, l.queue[0].entered
	}
	slot := first[0].slot
	waiting := len(l.queue)
	l.queue = c.fill(l.queue, slot, l.store.batch)
	waiting -= len(l.queue)
	// What nobody waits for has the room that is left, and always some.
	l.background = c.fill(l.background, slot, max(l.store.batch-waiting, l.store.batch/4, 1))
	l.calls++
	l.last = now
	c.deadline = entered + int64(l.store.timeout)
	return c
}

// fill adds of a queue what goes together, at most so many. The rest is returned.
func (c *call) fill(queue []*request, slot uint16, most int) []*request {
	n := 0
	kept := queue[:0]
	for i, r := range queue {
		if n == most {
			kept = append(kept, queue[i:]...)
			break
		}
		if r.slot == slot && c.add(r) {
			n++
		} else {
			kept = append(kept, r)
		}
	}
	clear(queue[len(kept):])
	return kept
}

// send sends a call, lets the next one go, and hands out the decisions.
func (l *lane) send(c *call) {
	sent := monotonic()
	reply, err := l.store.run(c, sent)
	replied := monotonic()

	l.mu.Lock()
	l.calls--
	next := l.dueLocked()
	l.mu.Unlock()
	if next != nil {
		go l.send(next)
	}

	if err == nil {
		if err = c.read(reply); err != nil {
			l.store.failed(err)
		}
		l.store.counters.carried(c)
	}
	for r := range c.requests {
		if err != nil {
			r.err = err
		}
		r.sent, r.replied = sent, replied
		if r.then != nil {
			r.then(r)
		} else {
			r.done <- struct{}{}
		}
	}
	l.mu.Lock()
	l.spare = append(l.spare, c)
	l.mu.Unlock()
}

// run runs the script once, within the call's deadline.
func (s *Store) run(c *call, now int64) (string, error) {
	left := time.Duration(c.deadline - now)
	if left <= 0 {
		return "", s.late(ErrDown)
	}
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	at := int64(-1)
	if s.now != nil {
		at = int64(c.now)
	}
	s.counters.calls.Add(1)
	script, argument := c.script(), c.argument(at)
	reply, err := script.run(ctx, s.client, c.keys, argument)
	for isTryAgain(err) && pause(ctx) {
		reply, err = script.run(ctx, s.client, c.keys, argument)
	}
	if ctx.Err() != nil && err != nil {
		err = s.late(ctx.Err())
	}
	s.breaker.done(context.Background(), err)
	if err != nil {
		s.failed(err)
		return "", err
	}
	text, ok := reply.(string)
	if !ok || len(text) < 8 {
		return "", errForm
	}
	told := parser{rest: text}
	s.learn(told.number(), now)
	return text, nil
}

// isTryAgain says whether the keys of a call are being moved between servers, and
// lie on two of them at the moment: nothing was done.
func isTryAgain(err error) bool {
	var said ServerError
	return errors.As(err, &said) && said.Code() == "TRYAGAIN"
}

// pause waits for two milliseconds, which many keys need less than to be moved;
// false where ctx ends before.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(2 * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Store) late(err error) error {
	return fmt.Errorf("redisstore: no answer within %v: %w", s.timeout, err)
}
