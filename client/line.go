package client

import (
	"context"
	"slices"
	"time"

	"github.com/comporta/comporta/internal/manners"
)

// A line is those who wait to call a server that counts them together, by the
// numbers under which they came: a retry stands where its request stood. The
// caller's lock guards it.
type line struct {
	host    *host
	lane    *manners.Lane
	waiters []*waiter
	users   int // calls that may still come back to it
}

// A waiter stands in line. It is woken when it has become the first, and when what
// it waits for may have changed.
type waiter struct {
	number   uint64
	since    time.Time
	deadline time.Time // zero is never
	wake     chan struct{}
	told     bool // it waits, and has said so
	// asked is when the outbound limit allows it, or may be asked again.
	asked   time.Time
	allowed bool
}

func (l *line) join(w *waiter) {
	at, _ := slices.BinarySearchFunc(l.waiters, w, func(a, b *waiter) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	l.waiters = slices.Insert(l.waiters, at, w)
}

// leave takes a waiter out and wakes who is first then.
func (l *line) leave(w *waiter) {
	if i := slices.Index(l.waiters, w); i >= 0 {
		l.waiters = slices.Delete(l.waiters, i, i+1)
	}
	l.wakeFirst()
}

func (l *line) wakeFirst() {
	if len(l.waiters) > 0 {
		l.waiters[0].rouse()
	}
}

func (l *line) wakeAll() {
	for _, w := range l.waiters {
		w.rouse()
	}
}

func (w *waiter) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// tooLate says that a waiter cannot wait until then.
func (w *waiter) tooLate(at time.Time, most time.Duration) bool {
	return at.Sub(w.since) > most || !w.deadline.IsZero() && !at.Before(w.deadline)
}

// sleep waits for d, a wake or the end of ctx; a nil wake never comes.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
