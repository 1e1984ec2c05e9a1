package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// An allowance is the limit that every side is given: so many units per window,
// all of them at once if one likes.
type allowance struct {
	units  int
	window time.Duration
}

// every is the time in which one unit comes back.
func (a allowance) every() time.Duration { return a.window / time.Duration(a.units) }

// A side is a limiter whose counts are in Redis. Open is what a program does once
// to limit by an allowance in a database of the server.
type side struct {
	name string
	open func(address string, database int, a allowance) (*limiter, error)
}

// A limiter is a side at work: take is what a program does for each request, the
// call that the side's documentation shows.
type limiter struct {
	take  func(ctx context.Context, key string) (allowed bool, err error)
	close func()
}

// check holds a side against what a limit of five means: five requests of a key,
// and no more.
func check(ctx context.Context, s side, address string, database int) error {
	few := allowance{units: 5, window: window}
	l, err := s.open(address, database, few)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	defer l.close()
	for _, key := range []string{"ana", "rui"} {
		for i := range 2 * few.units {
			got, err := l.take(ctx, key)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if want := i < few.units; got != want {
				return fmt.Errorf("%s: request %d of %s is allowed: %v, with a limit of %d", s.name, i+1, key, got, few.units)
			}
		}
	}
	return nil
}

// fill lets each key make a request, so that all are there when we measure. No more
// callers do it than will be measured: a client may go on in another way when it has
// seen several at a time.
func (l *limiter) fill(ctx context.Context, keys []string, callers int) error {
	errs := make([]error, callers)
	var done sync.WaitGroup
	for c := range callers {
		done.Go(func() {
			for i := c; i < len(keys) && errs[c] == nil; i += callers {
				_, errs[c] = l.take(ctx, keys[i])
			}
		})
	}
	done.Wait()
	return firstError(errs)
}

// block makes requests for each key until it is denied.
func (l *limiter) block(ctx context.Context, keys []string) error {
	for _, key := range keys {
		for {
			allowed, err := l.take(ctx, key)
			if err != nil {
				return err
			}
			if !allowed {
				break
			}
		}
	}
	return nil
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
