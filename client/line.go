package client

import (
	"cmp"
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
	resting map[*waiter]struct{} // who waits, out of line, to be sent again
	users   int                  // calls that may still come back to it
}

// A waiter stands in line. It is woken when it has become the first, and when it has
// become too late, by a gate or one that stands before it.
type waiter struct {
	number   uint64
	since    time.Time
	deadline time.Time // zero is never
	// grace is what it waits longer than it would, since a gate opens late by chance.
	grace time.Duration
	wake  chan struct{}
	told  bool // it waits, and has said so
	// asked is when the outbound limit allows it, or may be asked again.
	asked   time.Time
	allowed bool
}

// join puts a waiter in line, maybe before others.
func (l *line) join(w *waiter) (before bool) {
	at := l.find(w)
	l.waiters = slices.Insert(l.waiters, at, w)
	return at < len(l.waiters)-1
}

// leave takes a waiter out and wakes who is first then.
func (l *line) leave(w *waiter) {
	i := l.find(w)
	l.waiters = slices.Delete(l.waiters, i, i+1)
	l.wakeFirst()
}

// place is how many stand before a waiter.
func (l *line) place(w *waiter) time.Duration { return time.Duration(l.find(w)) }

func (l *line) find(w *waiter) int {
	at, _ := slices.BinarySearchFunc(l.waiters, w, func(a, b *waiter) int { return cmp.Compare(a.number, b.number) })
	return at
}

func (l *line) wakeFirst() {
	if len(l.waiters) > 0 {
		l.waiters[0].rouse()
	}
}

// wakeLate wakes those for which the wait has become too long.
func (l *line) wakeLate(at time.Time, most time.Duration) {
	if len(l.waiters)+len(l.resting) == 0 {
		return
	}
	must, told := l.lane.Ready(at).Must, l.lane.Told()
	for w := range l.resting {
		if w.tooLate(told, most) {
			w.rouse()
		}
	}
	spacing, _ := l.lane.Space(at)
	for _, w := range l.waiters {
		w.bear(told, must, at)
		if w.tooLate(must, most) {
			w.rouse()
		}
		must = must.Add(spacing)
	}
}

func (w *waiter) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// bear takes into account that a gate opens later than told: MaxWait is for what
// was told.
func (w *waiter) bear(told, must, at time.Time) {
	if told.After(at) {
		w.grace = max(w.grace, must.Sub(told))
	}
}

// tooLate says that a waiter cannot wait until then.
func (w *waiter) tooLate(at time.Time, most time.Duration) bool {
	return at.Sub(w.since) > most+w.grace || w.past(at)
}

// past says that it is the waiter's deadline, or later.
func (w *waiter) past(at time.Time) bool { return !w.deadline.IsZero() && !at.Before(w.deadline) }

// leastNap is the shortest sleep of a waiter that does not know its time.
const leastNap = time.Millisecond

// nap is how long a waiter that is not the first sleeps before it looks whether it
// can still be in time: half of the time it has, since the pace may have changed.
func (w *waiter) nap(at time.Time, most time.Duration) time.Duration {
	left := w.since.Add(most + w.grace).Sub(at)
	if !w.deadline.IsZero() {
		left = min(left, w.deadline.Sub(at))
	}
	return max(left/2, leastNap)
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
