package probe

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/comporta/comporta/client"
)

// A Shot is one request and what came of it. The server decided at some instant
// between Sent and Received.
type Shot struct {
	// Sent and Received are filled in by the session where the sender left them zero.
	Sent, Received time.Time
	Request        *Request
	// Status is 0 where there was no answer; then Err says why.
	Status int
	Header http.Header
	// Body is at most its first 16 KiB.
	Body []byte
	Err  error
	// Refused says that the user calls this status a refusal: some answer 503.
	Refused bool
	// Hints and RetryAfter are what it said of limits; Told says whether RetryAfter was.
	Hints      []client.Hint
	RetryAfter time.Duration
	Told       bool
}

// Denied says that a limit refused it: 429 (or 420, as some wrote it before 429 was
// registered), or a 403 that tells when to come again or that nothing remains.
// Failures (5xx) are not denials: they end a session.
func (s *Shot) Denied() bool {
	if s.Refused {
		return true
	}
	switch s.Status {
	case http.StatusTooManyRequests, 420:
		return true
	case http.StatusForbidden:
		return s.Told || slices.ContainsFunc(s.Hints, func(h client.Hint) bool { return h.Remaining == 0 })
	}
	return false
}

// Admitted says that it got past the limit: any answer but a denial or a failure.
func (s *Shot) Admitted() bool { return s.Status != 0 && s.Status < 500 && !s.Denied() }

// A Request is what is sent; the zero Request is what the user asked to be probed,
// with the first identity.
type Request struct {
	// Method and URL are "" for the user's own.
	Method, URL string
	// Identity is 0 for the first, 1 for the second, −1 for none.
	Identity int
	// Header is added, replacing fields of the same name.
	Header http.Header
	// Fresh asks for a connection of its own.
	Fresh bool
}

// A Sender carries one request; the HTTP one is real, tests have simulated ones. It
// is used by many goroutines at once, and returns soon after ctx is done.
type Sender interface {
	Send(ctx context.Context, r *Request) Shot
}

// Errors that end a session. What was found until then stands.
var (
	ErrRequests = errors.New("the budget of requests is spent")
	ErrTime     = errors.New("the budget of time is spent")
	ErrServer   = errors.New("the server failed (5xx): a probe does not go on")
)

// Budget is what a session may use. It is never passed.
type Budget struct {
	Requests int
	Time     time.Duration
}

// A Session sends requests within the budget and keeps what came back. It is safe
// for concurrent use.
type Session struct {
	sender   Sender
	deadline time.Time

	mu     sync.Mutex
	left   int   // requests
	ended  error // why no more are sent, but for time
	shots  []Shot
	orders []int // of sending, beside shots
	sent   int

	telling  sync.Mutex // progress is told of one shot at a time
	progress func(Shot)
}

// NewSession begins now. progress is told of each shot, one at a time, and may be nil.
func NewSession(s Sender, b Budget, progress func(Shot)) *Session {
	return &Session{sender: s, deadline: now().Add(b.Time), left: b.Requests, progress: progress}
}

// Shoot sends one and waits for the answer. An error says that the session has
// ended; where this very request ended it (by a 5xx, or as the time ran out while it
// was on its way), its shot comes with the error. ctx ends only this request: its
// error is ctx's then, and the shot is zero if it was not sent.
func (s *Session) Shoot(ctx context.Context, r *Request) (Shot, error) {
	order, err := s.spend(ctx)
	if err != nil {
		return Shot{}, err
	}
	return s.send(ctx, r, order)
}

// spend takes one request out of the budget.
func (s *Session) spend(ctx context.Context) (order int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended != nil:
		return 0, s.ended
	case !now().Before(s.deadline):
		return 0, ErrTime
	case s.left <= 0:
		return 0, ErrRequests
	}
	s.left--
	s.sent++
	return s.sent, nil
}

func (s *Session) send(ctx context.Context, r *Request, order int) (Shot, error) {
	if r == nil {
		r = &Request{}
	}
	timed, cancel := context.WithDeadline(ctx, s.deadline)
	defer cancel()
	begun := now()
	shot := s.sender.Send(timed, r)
	if shot.Sent.IsZero() {
		shot.Sent = begun
	}
	if shot.Received.IsZero() {
		shot.Received = now()
	}
	shot.Request = r
	return shot, s.keep(ctx, shot, order)
}

// keep records a shot and says whether it ended the session.
func (s *Session) keep(ctx context.Context, shot Shot, order int) error {
	s.mu.Lock()
	s.shots = append(s.shots, shot)
	s.orders = append(s.orders, order)
	var err error
	switch {
	case shot.Status == http.StatusNotImplemented && shot.Request.Method != "":
		// No failure: it does not know a method that we varied.
	case shot.Status >= 500 && !shot.Refused:
		s.ended = ErrServer
		err = ErrServer
	case shot.Status == 0 && ctx.Err() != nil:
		err = ctx.Err()
	case shot.Status == 0 && !now().Before(s.deadline):
		err = ErrTime
	}
	s.mu.Unlock()
	if s.progress != nil {
		s.telling.Lock()
		defer s.telling.Unlock()
		s.progress(shot)
	}
	return err
}

// Volley sends n at once, as far as the budget reaches, and waits for all answers,
// which come back in the order of sending. The error is the first that ended the
// session; the shots until then come with it. After a failure (5xx) no more of the
// volley is sent, but what is on its way is waited for.
func (s *Session) Volley(ctx context.Context, n int, r *Request) ([]Shot, error) {
	var group sync.WaitGroup
	var first error
	shots, errs := make([]Shot, 0, n), make([]error, n)
	for i := range n {
		order, err := s.spend(ctx)
		if err != nil {
			first = err
			break
		}
		shots = append(shots, Shot{})
		shot := &shots[i] // n fit: they do not move
		group.Go(func() { *shot, errs[i] = s.send(ctx, r, order) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return shots, err
		}
	}
	return shots, first
}

// Sleep waits, unless the budget of time would end before: then ErrTime, at once.
// A session that has ended does not wait either.
func (s *Session) Sleep(ctx context.Context, d time.Duration) error {
	if err := s.over(); err != nil {
		return err
	}
	if now().Add(d).After(s.deadline) {
		return ErrTime
	}
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shots are all that came back so far, in the order in which they were sent.
func (s *Session) Shots() []Shot {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := make([]int, len(s.shots))
	for i := range by {
		by[i] = i
	}
	slices.SortFunc(by, func(a, b int) int { return cmp.Compare(s.orders[a], s.orders[b]) })
	shots := make([]Shot, len(by))
	for i, at := range by {
		shots[i] = s.shots[at]
	}
	return shots
}

// over is the error that ended the session, if one did.
func (s *Session) over() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Left is what remains of the budget: nothing once a failure ended the session.
func (s *Session) Left() Budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return Budget{}
	}
	return Budget{Requests: s.left, Time: max(0, s.deadline.Sub(now()))}
}
