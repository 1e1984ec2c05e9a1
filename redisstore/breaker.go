package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta"
)

// ErrDown is the error of a call that was not made because the calls before it
// failed: it is a [comporta.ErrUnspent], and nothing was waited for.
var ErrDown error = unspent("redisstore: the store is down")

// unspent is an error that is a [comporta.ErrUnspent].
type unspent string

func (e unspent) Error() string { return string(e) }

func (unspent) Is(target error) bool { return target == comporta.ErrUnspent }

// downError is an ErrDown with its cause. Of a breaker it is also the state.
type downError struct {
	cause string
	since int64 // when the first call failed, on the breaker's clock
}

func (e *downError) Error() string {
	return ErrDown.Error() + ": " + e.cause + ": " + troubles[e.cause].meaning
}

func (e *downError) Is(target error) bool { return errors.Is(ErrDown, target) }

// patience is for how long all calls may fail before the breaker opens, however
// few they are.
const patience = time.Second

type breakerOptions struct {
	failures int           // in a row, that open it
	every    time.Duration // between the starts of two probes
	deadline time.Duration // of each probe
	now      func() int64  // monotonic nanoseconds

	// probe asks the store for something that works only when takes do.
	probe func(context.Context) error
	// down is told each outage, and within it each further cause once; up, its end,
	// which is when a call has succeeded. They are called one at a time, in order.
	down func(cause string, err error)
	up   func(after time.Duration)
}

// A breaker keeps calls from a store that fails: it opens after some failures in
// a row, or when there is nothing else for a second, and lets no call through
// until a probe succeeds. Then it is closed on trial, until a call succeeds: the
// first that fails opens it again, and that is the same outage, since a probe may
// do what calls may not. It is safe for concurrent use. While all is well a call
// costs two atomic loads.
type breaker struct {
	breakerOptions
	state   atomic.Pointer[downError] // nil: closed
	failing atomic.Bool               // streak > 0, or on trial
	turns   chan error                // to run: what opened it; nil for a trial that was passed
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu     sync.Mutex
	streak int
	trial  bool
	first  int64 // when the streak, or the outage, began
}

// newBreaker is a closed breaker. Its goroutine ends with close.
func newBreaker(o breakerOptions) *breaker {
	ctx, stop := context.WithCancel(context.Background())
	b := &breaker{breakerOptions: o, turns: make(chan error, 2), stop: stop}
	b.ended.Go(func() { b.run(ctx) })
	return b
}

// allow is nil where a call may be made; else an error that is ErrDown.
func (b *breaker) allow() error {
	if down := b.state.Load(); down != nil {
		return down
	}
	return nil
}

// done is told how each call ended; ctx is the caller's own, without the
// deadline that the store put on it.
func (b *breaker) done(ctx context.Context, err error) {
	switch {
	case err == nil:
		if b.failing.Load() {
			b.succeeded()
		}
	case failure(ctx, err):
		b.count(err)
	}
}

// beaten is told how a heartbeat ended.
func (b *breaker) beaten(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && refusesAll(err) {
		b.count(err)
		return
	}
	b.done(ctx, err)
}

func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state.Load() != nil {
		return // a call from before it opened
	}
	b.streak = 0
	b.failing.Store(false)
	if b.trial {
		b.trial = false
		b.turns <- nil // has room: run takes all before it closes the next time
	}
}

func (b *breaker) count(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state.Load() != nil {
		return // a call from before it opened
	}
	now := b.now()
	if b.streak == 0 && !b.trial {
		b.first = now
		b.failing.Store(true)
	}
	if b.streak++; b.trial || b.streak >= b.failures || now-b.first > int64(patience) {
		b.trial = false
		b.state.Store(&downError{cause(err), b.first})
		b.turns <- err
	}
}

// try closes it on trial.
func (b *breaker) try() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streak, b.trial = 0, true
	b.failing.Store(true)
	b.state.Store(nil)
}

// close ends the goroutine and waits for it.
func (b *breaker) close() {
	b.stop()
	b.ended.Wait()
}

func (b *breaker) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-b.turns:
			b.outage(ctx, err)
		}
	}
}

// outage probes until the store is back.
func (b *breaker) outage(ctx context.Context, err error) {
	told := map[string]bool{}
	tell := func(err error) {
		if why := cause(err); !told[why] {
			told[why] = true
			b.down(why, err)
		}
	}
	since := b.state.Load().since
	tick := time.NewTicker(b.every)
	defer tick.Stop()
	for err != nil {
		tell(err)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err = b.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			b.state.Store(&downError{cause(err), since})
			continue
		}
		b.try()
		select {
		case <-ctx.Done():
			return
		case err = <-b.turns:
		}
	}
	b.up(time.Duration(b.now() - since))
}

func (b *breaker) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.deadline)
	defer cancel()
	return b.probe(ctx)
}
