package client

import (
	"context"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/manners"
)

// A run is a call on its way: its place, and what it has been through.
type run struct {
	caller   *Caller
	call     *Call
	line     *line
	number   uint64 // its place; 0 until it has left or joined
	deadline time.Time
	sent     manners.Sent // the attempt under way, or the last
	attempts int
	prev     time.Duration // the wait before the last attempt
	events   []Event       // that the hook has not been told of
}

// leaveNow counts an attempt that nothing holds.
func (r *run) leaveNow(at time.Time) bool {
	first := len(r.line.waiters) == 0 || r.number > 0 && r.number < r.line.waiters[0].number
	if !first || r.caller.options.Limit != nil {
		return false
	}
	if r.line.lane.Ready(at).At.After(at) {
		return false
	}
	r.enrol()
	r.leave(at)
	return true
}

// enrol gives a call its place, when it comes to the line.
func (r *run) enrol() {
	if r.number == 0 {
		r.caller.number++
		r.number = r.caller.number
	}
}

func (r *run) leave(at time.Time) { r.sent = r.line.lane.Leave(at, r.attempts > 0) }

// enter waits until an attempt may leave, and counts it. The error is that of the
// context, or a *RateLimitError.
func (r *run) enter(ctx context.Context) error {
	c := r.caller
	c.mu.Lock()
	defer c.mu.Unlock()
	at := now()
	if r.leaveNow(at) {
		return nil
	}
	if len(r.line.waiters) >= c.options.MaxWaiters {
		return r.decline(ReasonLine, r.line.lane.Told().Sub(at), nil)
	}
	r.enrol()
	w := &waiter{number: r.number, since: at, deadline: r.deadline, wake: make(chan struct{}, 1)}
	if r.line.join(w) {
		r.line.wakeLate(at, c.config.MaxWait)
	}
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
			return err
		case wait <= 0:
			r.leave(now())
			return nil
		}
		if !w.told {
			w.told = true
			c.stats.Waits++
			r.note(Event{What: Wait, Wait: wait})
		}
		c.unlocked(func() {
			r.tell()
			err = sleep(ctx, wait, w.wake)
		})
		if err != nil {
			return err
		}
	}
}

// look says how long a waiter has to wait before it looks again; not above 0 is
// that it leaves now.
func (r *run) look(ctx context.Context, w *waiter) (wait time.Duration, err error) {
	at, most := now(), r.caller.config.MaxWait
	turn, place := r.line.lane.Ready(at), r.line.place(w)
	spacing, pacing := r.line.lane.Space(at)
	w.bear(r.line.lane.Told(), turn.Must, at)
	must := turn.Must.Add(place * spacing)
	ought := turn.At.Add(place * max(spacing, pacing))
	strict := r.caller.options.Pace == Strict
	switch {
	case w.tooLate(must, most) && (must.After(at) || strict):
		return 0, r.declineUntil(w, must, place == 0)
	case w.tooLate(ought, most) && strict:
		return 0, r.declineUntil(w, ought, false)
	case place > 0 && w.tooLate(manners.Later(r.line.waiters[0].asked, at), most) && r.caller.options.Limit != nil:
		return 0, r.decline(ReasonLimit, r.line.waiters[0].asked.Sub(at), nil)
	case w.tooLate(ought, most):
		// The pace holds nobody for so long: it goes before others, but in no one's turn.
		if turn.Must.After(at) {
			return turn.Must.Sub(at), nil
		}
		if place > 0 && !turn.At.After(at) {
			return w.nap(at, most), nil
		}
	case place > 0:
		return w.nap(at, most), nil // it is woken when it is the first
	case turn.At.After(at):
		return turn.At.Sub(at), nil
	}
	if r.caller.options.Limit == nil {
		return 0, nil
	}
	return r.ask(ctx, w, at)
}

// ask asks the outbound limit. Units of a request that is then not sent are lost.
func (r *run) ask(ctx context.Context, w *waiter, at time.Time) (wait time.Duration, err error) {
	switch {
	case w.asked.After(at):
		return w.asked.Sub(at), nil
	case w.allowed:
		return 0, nil
	}
	c := r.caller
	var d comporta.Decision
	c.unlocked(func() { d, err = c.options.Limit.Take(ctx, r.call.Identity, r.call.Cost) })
	if err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, r.decline(ReasonLimit, 0, err)
	}
	if w.allowed, wait = d.Allowed, d.Delay; !d.Allowed {
		wait = max(d.RetryAfter, leastNap)
	}
	at = now()
	w.asked = at.Add(min(wait, c.config.MaxWait+time.Hour))
	if w.tooLate(w.asked, c.config.MaxWait) {
		return 0, r.decline(ReasonLimit, wait, nil)
	}
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
