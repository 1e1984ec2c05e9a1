package client

import (
	"context"
	"slices"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/manners"
)

// A run is a call on its way: its place, and what it has been through.
type run struct {
	caller   *Caller
	call     *Call
	line     *line
	number   uint64
	deadline time.Time
	attempts int
	prev     time.Duration // the wait before the last attempt
	events   []Event       // that the hook has not been told of
}

// enter waits until an attempt may leave, and counts it. The error is that of the
// context, or a *RateLimitError.
func (r *run) enter(ctx context.Context) (manners.Sent, error) {
	c := r.caller
	c.mu.Lock()
	defer c.mu.Unlock()
	at := now()
	if c.options.Limit == nil && (len(r.line.waiters) == 0 || r.number < r.line.waiters[0].number) {
		if turn := r.line.lane.Ready(at); !turn.At.After(at) {
			return r.line.lane.Leave(at, r.attempts > 0), nil
		}
	}
	if len(r.line.waiters) >= c.options.MaxWaiters {
		return manners.Sent{}, r.decline(ReasonLine, r.line.lane.Told().Sub(at), nil)
	}
	w := &waiter{number: r.number, since: at, deadline: r.deadline, wake: make(chan struct{}, 1)}
	r.line.join(w)
	c.stats.Waiting++
	defer func() {
		c.stats.Waiting--
		if w.told {
			c.stats.Waited += now().Sub(w.since)
		}
		r.line.leave(w)
	}()
	for {
		wait, err := r.look(ctx, w)
		switch {
		case err != nil:
			return manners.Sent{}, err
		case wait <= 0:
			return r.line.lane.Leave(now(), r.attempts > 0), nil
		}
		if !w.told {
			w.told = true
			c.stats.Waits++
			r.note(Event{What: Wait, Wait: wait})
		}
		c.mu.Unlock()
		r.tell()
		err = sleep(ctx, wait, w.wake)
		c.mu.Lock()
		if err != nil {
			return manners.Sent{}, err
		}
	}
}

// look says how long a waiter has to wait before it looks again; not above 0 is
// that it leaves now.
func (r *run) look(ctx context.Context, w *waiter) (wait time.Duration, err error) {
	at, most := now(), r.caller.config.MaxWait
	turn := r.line.lane.Ready(at)
	place := time.Duration(slices.Index(r.line.waiters, w))
	spacing, pacing := r.line.lane.Space(at)
	must := turn.Must.Add(place * spacing)
	if w.tooLate(must, most) {
		return 0, r.declineUntil(w, must, place == 0)
	}
	if ought := turn.At.Add(place * max(spacing, pacing)); w.tooLate(ought, most) {
		if r.caller.options.Pace == Strict {
			return 0, r.declineUntil(w, ought, false)
		}
		turn.At = must // gently: the pace holds nobody for so long
		if !must.After(at) {
			place = 0
		}
	}
	if place > 0 {
		return w.since.Add(most).Sub(at) + 1, nil // it is woken when it is the first
	}
	if wait := turn.At.Sub(at); wait > 0 {
		return wait, nil
	}
	if r.caller.options.Limit == nil {
		return 0, nil
	}
	return r.ask(ctx, w, at)
}

// ask asks the outbound limit for the first in line.
func (r *run) ask(ctx context.Context, w *waiter, at time.Time) (wait time.Duration, err error) {
	if w.asked.After(at) {
		return w.asked.Sub(at), nil
	}
	if w.allowed {
		return 0, nil
	}
	c := r.caller
	c.mu.Unlock()
	d, err := c.options.Limit.Take(ctx, r.call.Identity, r.call.Cost)
	c.mu.Lock()
	at = now()
	switch {
	case err != nil && ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, r.decline(ReasonLimit, 0, err)
	case d.Allowed:
		w.allowed, wait = true, d.Delay
	case d.RetryAfter == comporta.Never || w.tooLate(at.Add(d.RetryAfter), c.config.MaxWait):
		return 0, r.decline(ReasonLimit, d.RetryAfter, nil)
	default:
		wait = d.RetryAfter
	}
	w.asked = at.Add(wait)
	if wait > 0 {
		return wait, nil
	}
	return r.look(ctx, w) // while it was asked, the gate may have been shut
}

// declineUntil declines a call for which the wait until then is too long.
func (r *run) declineUntil(w *waiter, until time.Time, first bool) error {
	at, told := now(), r.line.lane.Told()
	switch {
	case told.After(at) && (first || w.tooLate(told, r.caller.config.MaxWait)):
		return r.decline(ReasonGate, told.Sub(at), nil)
	case first:
		return r.decline(ReasonGate, until.Sub(at), nil)
	}
	return r.decline(ReasonLine, until.Sub(at), nil)
}

// decline is the error of a call that is not sent, or not again.
func (r *run) decline(reason Reason, wait time.Duration, err error) error {
	r.caller.stats.Declined[reason]++
	e := &RateLimitError{Host: r.call.Target, Reason: reason, RetryAfter: max(wait, 0), Attempts: r.attempts, Err: err}
	r.note(Event{What: Declined, Wait: e.RetryAfter, Reason: reason, Err: err})
	return e
}
