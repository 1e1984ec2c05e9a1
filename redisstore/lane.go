package redisstore

import (
	"context"
	"errors"
	"fmt"
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
	callsMost = 64
)

// A lane sends requests to one server, or in a cluster those of some slots, in
// calls that they share.
type lane struct {
	store *Store

	mu    sync.Mutex
	queue []*request
	aside []*request // go in line behind the next
	calls int        // out now
	last  int64      // when the last was sent
	spare []*call
}

// ask puts a request in line and waits for its decisions, for the end of ctx or
// for the store's deadline.
func (l *lane) ask(ctx context.Context, r *request) error {
	if c := l.enter(r); c != nil {
		l.send(c)
	}
	if ctx.Done() == nil {
		<-r.done
		return r.err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return &abandoned{ctx.Err()}
	}
}

// enter puts a request in line, and behind it what was put aside. It is the call
// that may go out now, nil where there is none.
func (l *lane) enter(r *request) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enterLocked(r)
}

func (l *lane) enterLocked(r *request) *call {
	now := monotonic()
	l.queue = append(l.queue, r)
	for _, r := range l.aside {
		r.entered = now
		l.queue = append(l.queue, r)
	}
	clear(l.aside)
	l.aside = l.aside[:0]
	if l.calls < callsOut || l.calls < callsMost && now-l.last > slow {
		return l.pickLocked(now)
	}
	return nil
}

// later puts a request in line that nobody waits for.
func (l *lane) later(r *request) {
	if c := l.enter(r); c != nil {
		go l.send(c)
	}
}

// put puts such a request aside: it goes behind the next, or with flush.
func (l *lane) put(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aside = append(l.aside, r)
}

// flush puts in line what still is aside.
func (l *lane) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.aside); n > 0 {
		first := l.aside[0]
		l.aside = l.aside[:copy(l.aside, l.aside[1:])]
		if c := l.enterLocked(first); c != nil {
			go l.send(c)
		}
	}
}

// abandoned is the error of a request whose caller stopped waiting for it: it may
// be spent, and belongs to its call.
type abandoned struct{ error }

func (e *abandoned) Unwrap() error { return e.error }

// pickLocked makes a call of what waits, as much as goes together; nil where nothing
// waits.
func (l *lane) pickLocked(now int64) *call {
	if len(l.queue) == 0 {
		return nil
	}
	var c *call
	if n := len(l.spare); n > 0 {
		c, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		c = newCall(l.store)
	}
	c.reset(l.store.about(now))
	first, n := l.queue[0], 0
	kept := l.queue[:0]
	for _, r := range l.queue {
		if n < l.store.batch && r.slot == first.slot && c.add(r) {
			n++
		} else {
			kept = append(kept, r)
		}
	}
	clear(l.queue[len(kept):])
	l.queue = kept
	l.calls++
	l.last = now
	c.deadline = first.entered + int64(l.store.timeout)
	return c
}

// send sends a call, lets the next one go, and hands out the decisions.
func (l *lane) send(c *call) {
	sent := monotonic()
	reply, err := l.store.run(c, sent)
	replied := monotonic()

	l.mu.Lock()
	l.calls--
	next := l.pickLocked(replied)
	l.mu.Unlock()
	if next != nil {
		go l.send(next)
	}

	if err == nil {
		err = c.read(reply)
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
		s.counters.failed(err)
		return "", err
	}
	text, ok := reply.(string)
	if !ok || len(text) < 8 {
		return "", errForm
	}
	s.learn(text, now)
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
