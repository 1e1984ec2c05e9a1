package client

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/comporta/comporta/internal/manners"
)

// A Caller is what a Transport is made of, for carriers other than HTTP, such
// as package grpcclient: it waits in line, sends, learns from the answer, and
// sends again what may be sent again. It is safe for concurrent use.
type Caller struct {
	options Options
	config  manners.Config

	mu     sync.Mutex
	hosts  map[string]*host
	lines  int
	number uint64 // of calls
	stats  Stats
}

// NewCaller is a caller; Transport, Account, Partition, AttemptHeader and
// ExpectAbove are without effect.
func NewCaller(o Options) *Caller {
	o = o.filled()
	return &Caller{
		options: o, hosts: map[string]*host{}, stats: newStats(),
		config: manners.Config{
			Attempts: o.Attempts, MaxWait: o.MaxWait,
			Backoff: manners.Backoff{Base: o.Backoff.Base, Cap: o.Backoff.Cap, Jitter: manners.Jitter(o.Backoff.Jitter)},
			Percent: o.Budget.Percent, Reserve: float64(o.Budget.Reserve),
			Pace: manners.Pace(o.Pace), K: o.Adaptive, Random: o.Random,
		},
	}
}

// forever is as long as anybody waits; sums and multiples of it do not overflow.
const forever = 10 * 365 * 24 * time.Hour

// filled are the options with their defaults.
func (o Options) filled() Options {
	or := func(v *time.Duration, instead time.Duration) {
		if *v <= 0 {
			*v = instead
		}
	}
	if o.Attempts <= 0 {
		o.Attempts = 3
	}
	or(&o.MaxWait, time.Minute)
	or(&o.Backoff.Base, 500*time.Millisecond)
	or(&o.Backoff.Cap, 30*time.Second)
	o.MaxWait, o.Backoff.Cap = min(o.MaxWait, forever), min(o.Backoff.Cap, forever)
	o.Backoff.Base = min(o.Backoff.Base, o.Backoff.Cap)
	if o.Budget.Percent == 0 {
		o.Budget.Percent = 10
	}
	if o.Budget.Reserve <= 0 {
		o.Budget.Reserve = 10
	}
	if o.MaxWaiters <= 0 {
		o.MaxWaiters = 10_000
	}
	if o.ExpectAbove == 0 {
		o.ExpectAbove = 1 << 20
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}

// A Call is one request, whatever carries it.
type Call struct {
	// Target is the server, and Partition what it counts apart there.
	Target, Partition string
	// Identity and Cost are for the outbound limit; a Cost of 0 only looks.
	Identity string
	Cost     int64
	// Repeat: it may be sent again though the server may have acted on it. Resend: it
	// may be sent again when the server refused it. Neither: it is sent once. They are
	// looked at after each attempt.
	Repeat, Resend bool

	// again is called where it is to be sent again, before the wait; an error is that
	// it cannot be. Nil is without.
	again func() error
}

// An Answer is what came back from one attempt.
type Answer struct {
	Kind Kind
	// Wait is the time that the server told to wait, where Told.
	Wait time.Duration
	Told bool
	// Word is the server's own word on trying again.
	Word Word
	// Final says that the same request would fail again, as with a wrong certificate.
	Final bool
	// Hints are what it said of its limits.
	Hints []Hint
	// Status and Err are for Event alone.
	Status int
	Err    error

	// received is when it came, where that is not now.
	received time.Time
	// more reads what takes longer to come, once the gate has heard of the refusal;
	// nil is all that there is.
	more func(*Answer)
}

// A Kind is what became of an attempt.
type Kind uint8

const (
	Accepted   Kind = iota // the server dealt with it, whatever it thought of it
	Refused                // over a limit, and not acted upon: 429, RESOURCE_EXHAUSTED
	Overloaded             // the server has too much to do: 503, UNAVAILABLE
	Failed                 // lost or broken; whether the server acted is not known
	Cancelled              // the caller itself gave up
)

// A Word is what a server may say of trying again: x-should-retry, a pushback.
type Word uint8

const (
	Unsaid Word = iota
	Again       // it may be tried again
	Never       // it is not to be
)

// Do sends a call until it is accepted or must not be sent again. try sends it
// once and is told which attempt it is, from 1; its context ends with ctx, and is
// marked (see NoRetry). The error is nil when the last answer was Accepted. Else
// it is a *RateLimitError, in which Attempts is 0 where nothing was sent; or the
// context's error, where that ended first.
func (c *Caller) Do(ctx context.Context, call *Call, try func(ctx context.Context, attempt int) Answer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &run{caller: c, call: call}
	defer r.tell()
	left, err := r.begin(ctx)
	defer r.end()
	if err != nil {
		return err
	}
	marked := context.WithValue(ctx, noRetry{}, r)
	for {
		if !left {
			if err := r.enter(ctx); err != nil {
				return err
			}
		}
		r.attempts++
		a := r.try(marked, try)
		wait, err := r.back(ctx, a)
		if err != nil || wait == 0 {
			return err
		}
		if err := r.again(ctx, wait, a); err != nil {
			return err
		}
		left = false
	}
}

// begin finds a call's place, and lets it leave where nothing holds it: then it
// needs no place in line.
func (r *run) begin(ctx context.Context) (left bool, err error) {
	c := r.caller
	r.deadline, _ = ctx.Deadline()
	c.mu.Lock()
	defer c.mu.Unlock()
	at := now()
	r.line = c.line(r.call.Target, r.call.Partition)
	r.line.users++
	if r.line.host.Throttled(at) {
		return false, r.decline(ReasonThrottle, 0, nil)
	}
	return r.leaveNow(at), nil
}

func (r *run) end() {
	r.caller.mu.Lock()
	defer r.caller.mu.Unlock()
	r.line.users--
}

// try is one attempt. Where it panics, the panic goes on, and the attempt is over.
func (r *run) try(ctx context.Context, try func(ctx context.Context, attempt int) Answer) *Answer {
	back := false
	defer func() {
		if !back {
			r.caller.mu.Lock()
			r.line.lane.Back(now(), r.sent, &manners.Answer{Kind: manners.Cancelled})
			r.caller.mu.Unlock()
		}
	}()
	a := try(ctx, r.attempts)
	if a.received.IsZero() {
		a.received = now()
	}
	if a.more != nil {
		r.heed(&a)
		a.more(&a)
	}
	back = true
	return &a
}

// heed shuts the gate for a refusal of which more is to be read.
func (r *run) heed(a *Answer) {
	if !a.Told || a.Kind != Refused && a.Kind != Overloaded {
		return
	}
	r.caller.mu.Lock()
	defer r.caller.mu.Unlock()
	early := Answer{Kind: a.Kind, Wait: a.Wait, Told: true, received: a.received}
	r.learn(&early, func(at time.Time, m *manners.Answer) { r.line.lane.Heed(at, r.sent, m) })
}

// back learns from an answer. The call is sent again after a wait above 0.
func (r *run) back(ctx context.Context, a *Answer) (wait time.Duration, err error) {
	c := r.caller
	c.mu.Lock()
	defer c.mu.Unlock()
	lane, why := r.line.lane, manners.None
	c.stats.count(r.attempts, a.Kind)
	r.note(Event{What: Attempt, Status: a.Status, Err: a.Err})
	r.learn(a, func(at time.Time, m *manners.Answer) {
		lane.Back(at, r.sent, m)
		if a.Kind == Accepted {
			return
		}
		try := manners.Try{Attempts: r.attempts, Prev: r.prev, Repeat: r.call.Repeat, Resend: r.call.Resend, Deadline: r.deadline}
		if retriesItself(ctx) {
			try.Repeat, try.Resend = false, false
		}
		wait, why = lane.Next(now(), &try, m)
	})
	switch {
	case why == manners.None:
		return wait, nil
	case a.Kind == Cancelled && ctx.Err() != nil:
		return 0, ctx.Err()
	}
	return 0, r.abandon(reasons[why], a, a.Err)
}

// again waits, once what will be sent is there.
func (r *run) again(ctx context.Context, wait time.Duration, a *Answer) error {
	c, at := r.caller, now()
	if r.call.again != nil {
		if err := r.call.again(); err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			return r.abandon(ReasonUnsafe, a, err)
		}
	}
	r.note(Event{What: Wait, Wait: wait})
	r.tell()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := r.rest(ctx, at, at.Add(wait), a); err != nil {
		return err
	}
	r.prev = wait
	c.stats.Waits++
	c.stats.Waited += wait
	return nil
}

// rest waits out of line, unless the gate moves so far that it is in vain.
func (r *run) rest(ctx context.Context, since, until time.Time, a *Answer) error {
	c, l := r.caller, r.line
	w := &waiter{since: since, deadline: r.deadline, wake: make(chan struct{}, 1)}
	l.resting[w] = struct{}{}
	defer delete(l.resting, w)
	for {
		at := now()
		switch told := l.lane.Told(); {
		case !told.After(at):
		case w.past(told):
			return r.abandon(ReasonDeadline, a, nil)
		case w.tooLate(told, c.config.MaxWait):
			return r.abandon(ReasonTooLong, a, nil)
		}
		if !until.After(at) {
			return nil
		}
		c.mu.Unlock()
		err := sleep(ctx, until.Sub(at), w.wake)
		c.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// reasons are those for which a call is not sent again.
var reasons = map[manners.Why]Reason{
	manners.Attempts: ReasonAttempts, manners.Spent: ReasonBudget, manners.Unsafe: ReasonUnsafe,
	manners.Forbidden: ReasonForbidden, manners.TooLong: ReasonTooLong, manners.Late: ReasonDeadline, manners.Final: ReasonFinal,
}

// abandon is the error of a call that is not sent again, and tells the time that
// the server told it or others.
func (r *run) abandon(reason Reason, a *Answer, err error) error {
	wait := max(r.line.lane.Told().Sub(now()), 0)
	if a.Told {
		wait = max(wait, a.Wait)
	}
	r.caller.stats.Abandoned[reason]++
	r.note(Event{What: Abandoned, Wait: wait, Reason: reason, Err: err})
	return &RateLimitError{Host: r.call.Target, Reason: reason, RetryAfter: wait, Attempts: r.attempts, Err: err}
}

// manners is an answer in the words of the rules.
func (a *Answer) manners() manners.Answer {
	m := manners.Answer{Kind: manners.Kind(a.Kind), Wait: a.Wait, Told: a.Told, Word: manners.Word(a.Word), Retryable: !a.Final}
	for _, h := range a.Hints {
		m.Hints = append(m.Hints, manners.Hint{
			Policy: h.Dialect + "\x00" + h.Policy + "\x00" + h.Partition + "\x00" + h.Unit, Other: h.Unit != "requests" && h.Unit != "",
			Limit: h.Limit, Remaining: h.Remaining, Reset: h.Reset, Window: h.Window,
		})
	}
	return m
}

// note keeps what happened until tell tells the hook, with no lock held.
func (r *run) note(e Event) {
	if r.caller.options.Observe == nil {
		return
	}
	e.Host, e.Partition, e.Attempt = r.call.Target, r.call.Partition, r.attempts
	r.events = append(r.events, e)
}

func (r *run) tell() {
	events := r.events
	r.events = nil // told once, though the hook panics
	for _, e := range events {
		r.caller.options.Observe(e)
	}
}

// unlocked does what may panic, being the program's own, with the caller's lock let
// go: whoever holds it unlocks it, come what may.
func (c *Caller) unlocked(f func()) {
	c.mu.Unlock()
	defer c.mu.Lock()
	f()
}

type noRetry struct{}

// NoRetry is a context in which nothing is sent twice: for callers that retry
// themselves, since retries of retries multiply. The attempts of a Transport have
// it, so that one Transport around another does not.
func NoRetry(ctx context.Context) context.Context { return context.WithValue(ctx, noRetry{}, true) }

func retriesItself(ctx context.Context) bool { return ctx.Value(noRetry{}) != nil }
