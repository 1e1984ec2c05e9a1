package comporta_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/storetest"
)

// waits runs a test in a bubble whose time passes when all in it wait.
func waits(t *testing.T, limit comporta.Limit, test func(t *testing.T, l *comporta.Limiter)) {
	synctest.Test(t, func(t *testing.T) {
		l, err := comporta.NewLimiter(&storetest.Model{Now: time.Now}, limit)
		if err != nil {
			t.Fatal(err)
		}
		test(t, l)
	})
}

func TestWaitBlocksUntilAllowed(t *testing.T) {
	waits(t, comporta.Limit{Limit: 2, Window: time.Second}, func(t *testing.T, l *comporta.Limiter) {
		start := time.Now()
		for i, want := range []time.Duration{0, 0, 500 * time.Millisecond, time.Second} {
			if err := l.Wait(t.Context(), "a", 1); err != nil || time.Since(start) != want {
				t.Errorf("wait %d ends after %v, %v; want %v", i, time.Since(start), err, want)
			}
		}
		if err := l.Wait(t.Context(), "a", 0); err != nil || time.Since(start) != time.Second {
			t.Errorf("for nothing: %v", err)
		}
	})
}

func TestWaitSitsOutTheDelay(t *testing.T) {
	waits(t, comporta.Limit{Limit: 1, Window: time.Second, Burst: 3, Algorithm: comporta.LeakyBucket}, func(t *testing.T, l *comporta.Limiter) {
		start := time.Now()
		for i := range 6 {
			if err := l.Wait(t.Context(), "a", 1); err != nil || time.Since(start) != time.Duration(i)*time.Second {
				t.Errorf("wait %d ends after %v, %v", i, time.Since(start), err)
			}
		}
	})
}

func TestWaitDoesNotWaitInVain(t *testing.T) {
	hour := comporta.Limit{Limit: 1, Window: time.Hour}
	patient := hour
	patient.MaxWait = 2 * time.Hour
	for _, limit := range []comporta.Limit{hour, patient} {
		waits(t, limit, func(t *testing.T, l *comporta.Limiter) {
			if err := l.Wait(t.Context(), "a", 1); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := l.Wait(ctx, "a", 1)
			if !errors.Is(err, comporta.ErrWait) || err.Error() != "comporta: not allowed in time: it takes 1h0m0s, and 1m0s are left to the deadline" {
				t.Errorf("past the deadline: %v", err)
			}
			if time.Since(start) != 0 {
				t.Errorf("it took %v to say so", time.Since(start))
			}
			// What it had reserved is given back: the next waits for one unit, not for two.
			if err := l.Wait(t.Context(), "a", 1); err != nil || time.Since(start) != time.Hour {
				t.Errorf("the next: %v after %v", err, time.Since(start))
			}
			if err := l.Wait(t.Context(), "a", 2); !errors.Is(err, comporta.ErrWait) || err.Error() != "comporta: not allowed in time, nor ever: a cost of 2 is over what a full budget holds" {
				t.Errorf("for more than is ever held: %v", err)
			}
		})
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	for _, limit := range []comporta.Limit{
		{Limit: 1, Window: time.Hour},
		{Limit: 1, Window: time.Hour, MaxWait: 2 * time.Hour},
		{Limit: 1, Window: time.Hour, Burst: 2, Algorithm: comporta.LeakyBucket},
	} {
		waits(t, limit, func(t *testing.T, l *comporta.Limiter) {
			if err := l.Wait(t.Context(), "a", 1); err != nil {
				t.Fatal(err)
			}
			before, _ := l.Peek(t.Context(), "a")
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- l.Wait(ctx, "a", 1) }()
			synctest.Wait()
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, comporta.ErrWait) {
				t.Errorf("%v: a cancelled wait: %v", limit.Algorithm, err)
			}
			if after, _ := l.Peek(t.Context(), "a"); after != before {
				t.Errorf("%v: a cancelled wait is not given back: %+v, before it %+v", limit.Algorithm, after, before)
			}
			if err := l.Wait(ctx, "a", 0); !errors.Is(err, context.Canceled) {
				t.Errorf("%v: with a context that has ended: %v", limit.Algorithm, err)
			}
		})
	}
}
