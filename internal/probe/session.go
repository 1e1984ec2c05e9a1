package probe

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/comporta/comporta/client"
)

// A Shot is one request and what came of it. The server decided at some instant
// between Sent and Received.
type Shot struct {
	Sent, Received time.Time
	Request        *Request
	// Status is 0 where there was no answer; then Err says why.
	Status int
	Header http.Header
	// Body is at most its first 16 KiB.
	Body []byte
	Err  error
	// Hints and RetryAfter are what it said of limits; Told says whether RetryAfter was.
	Hints      []client.Hint
	RetryAfter time.Duration
	Told       bool
}

// Denied says that a limit refused it: 429, or what the API answers instead.
func (s *Shot) Denied() bool { panic("todo") }

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

// A Sender carries one request; the HTTP one is real, tests have simulated ones.
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
type Session struct{}

// NewSession begins now. progress is told of each shot, and may be nil.
func NewSession(s Sender, b Budget, progress func(Shot)) *Session { panic("todo") }

// Shoot sends one.
func (s *Session) Shoot(ctx context.Context, r *Request) (Shot, error) { panic("todo") }

// Volley sends n at once, as far as the budget reaches, in the order of sending.
func (s *Session) Volley(ctx context.Context, n int, r *Request) ([]Shot, error) { panic("todo") }

// Sleep waits, unless the budget of time would end before: then ErrTime, at once.
func (s *Session) Sleep(ctx context.Context, d time.Duration) error { panic("todo") }

// Shots are all so far, by the time they were sent.
func (s *Session) Shots() []Shot { panic("todo") }

// Left is what remains of the budget.
func (s *Session) Left() Budget { panic("todo") }
