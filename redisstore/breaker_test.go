package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// outages is a breaker with all that it was told and tells, on the clock of a
// synctest bubble.
type outages struct {
	*breaker
	start  time.Time
	probe  atomic.Pointer[func(context.Context) error]
	probed atomic.Int64
	lines  []string
}

func newOutages(t *testing.T) *outages {
	o := &outages{start: time.Now()}
	o.answer(nil)
	note := func(format string, args ...any) {
		o.lines = append(o.lines, fmt.Sprintf("%v ", time.Since(o.start))+fmt.Sprintf(format, args...))
	}
	o.breaker = newBreaker(breakerOptions{
		failures: 5, every: 200 * time.Millisecond, deadline: 50 * time.Millisecond,
		now: func() int64 { return int64(time.Since(o.start)) },
		probe: func(ctx context.Context) error {
			o.probed.Add(1)
			return (*o.probe.Load())(ctx)
		},
		down: func(cause string, err error) { note("down %s (%v)", cause, err) },
		up:   func(after time.Duration) { note("up after %v", after) },
	})
	t.Cleanup(o.close)
	return o
}

// told waits until all is told.
func (o *outages) told() []string {
	synctest.Wait()
	return o.lines
}

func (o *outages) answer(err error) {
	f := func(context.Context) error { return err }
	o.probe.Store(&f)
}

const readonly = ServerError("READONLY You can't write against a read only replica.")

func TestBreakerOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t)
		o.answer(readonly)
		for range 4 {
			o.done(t.Context(), readonly)
		}
		if err := o.allow(); err != nil {
			t.Fatal("open after four failures:", err)
		}
		o.done(t.Context(), nil)
		for range 4 {
			o.done(t.Context(), readonly)
		}
		if err := o.allow(); err != nil {
			t.Fatal("a success did not reset:", err)
		}
		o.done(t.Context(), readonly)
		err := o.allow()
		if !errors.Is(err, ErrDown) || cause(err) != "READONLY" || !strings.Contains(err.Error(), "READONLY: the server is a replica") {
			t.Fatal("after five failures:", err)
		}
		o.done(t.Context(), nil) // the answer to a call from before
		if o.allow() == nil {
			t.Fatal("a late success closed it")
		}
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if n := o.probed.Load(); n != 5 {
			t.Fatalf("%d probes in a second, want 5", n)
		}
		o.answer(nil)
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if err := o.allow(); err != nil {
			t.Fatal("open though a probe succeeded:", err)
		}
		o.done(t.Context(), nil)
		time.Sleep(time.Minute)
		if n := o.probed.Load(); n != 6 {
			t.Fatalf("%d probes, want none while closed", n-6)
		}
		want := []string{"0s down READONLY (" + string(readonly) + ")", "1.201s up after 1.201s"}
		if diff := cmp.Diff(want, o.told()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Few calls open it as well, when all of them fail for more than a second.
func TestBreakerOpensByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t)
		o.done(t.Context(), context.DeadlineExceeded)
		time.Sleep(time.Second)
		o.done(t.Context(), context.DeadlineExceeded)
		if err := o.allow(); err != nil {
			t.Fatal("open after a second sharp:", err)
		}
		time.Sleep(time.Millisecond)
		o.done(t.Context(), context.DeadlineExceeded)
		if err := o.allow(); cause(err) != "timeout" {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		o.done(t.Context(), nil)
		if diff := cmp.Diff([]string{"1.001s down timeout (context deadline exceeded)", "2.001s up after 2.001s"}, o.told()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A probe that hangs ends at its deadline, and each cause of one outage is told once.
func TestBreakerTellsCausesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t)
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		o.probe.Store(&hang)
		for range 9 {
			o.done(t.Context(), readonly)
		}
		time.Sleep(450 * time.Millisecond)
		if err := o.allow(); cause(err) != "timeout" {
			t.Fatal("what probes meet is the cause:", err)
		}
		o.answer(readonly)
		time.Sleep(200 * time.Millisecond)
		o.answer(nil)
		time.Sleep(160 * time.Millisecond)
		o.done(t.Context(), nil)
		want := []string{
			"0s down READONLY (" + string(readonly) + ")",
			"250ms down timeout (context deadline exceeded)",
			"810ms up after 810ms",
		}
		if diff := cmp.Diff(want, o.told()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A user may be allowed what a probe asks and not what takes do: that is one
// outage, in which one call is let through for each probe.
func TestBreakerIsClosedOnTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t)
		const forbidden = ServerError("NOPERM this user has no permissions to run the 'evalsha' command")
		for range 5 {
			o.done(t.Context(), forbidden)
		}
		for range 10 {
			time.Sleep(200 * time.Millisecond)
			synctest.Wait()
			if err := o.allow(); err != nil {
				t.Fatal("open though a probe succeeded:", err)
			}
			o.done(t.Context(), forbidden)
			if o.allow() == nil {
				t.Fatal("closed though the call failed")
			}
			if down := o.state.Load(); down.since != 0 {
				t.Fatal("another outage began at", time.Duration(down.since))
			}
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		o.done(t.Context(), nil)
		for range 4 {
			o.done(t.Context(), forbidden) // the trial is over
		}
		if err := o.allow(); err != nil {
			t.Fatal(err)
		}
		want := []string{"0s down NOPERM (" + string(forbidden) + ")", "2.2s up after 2.2s"}
		if diff := cmp.Diff(want, o.told()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// The bubble ends only when all of its goroutines have.
func TestBreakerClosesWhileOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t)
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		o.probe.Store(&hang)
		for range 5 {
			o.done(t.Context(), readonly)
		}
		time.Sleep(210 * time.Millisecond) // within a probe
		o.close()
		if got := time.Since(o.start); got != 210*time.Millisecond {
			t.Fatal("close waited for the probe:", got)
		}
		if len(o.lines) != 1 {
			t.Fatal("being closed is no cause:", o.told())
		}
	})
}

func TestCallersOwnEndIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		time.Sleep(time.Millisecond)
		for range 10 {
			o.done(gone, gone.Err())
			o.done(short, short.Err())
			o.done(short, errors.New("the connection was given up"))
			o.done(t.Context(), context.Canceled) // the store's own, at its end
			o.done(t.Context(), ServerError("CROSSSLOT Keys in request don't hash to the same slot"))
		}
		if err := o.allow(); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			o.done(gone, readonly) // what a server said counts, whoever heard it
		}
		if o.allow() == nil {
			t.Fatal("closed after five failures")
		}
	})
}

func BenchmarkBreakerClosed(b *testing.B) {
	br := newBreaker(breakerOptions{failures: 5, every: time.Second})
	defer br.close()
	ctx := b.Context()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if br.allow() == nil {
				br.done(ctx, nil)
			}
		}
	})
}
