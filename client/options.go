package client

import (
	"context"
	"net/http"
	"time"

	"github.com/comporta/comporta"
)

// Options say how a caller behaves. The zero Options are safe.
type Options struct {
	// Transport carries the requests; nil is http.DefaultTransport.
	Transport http.RoundTripper
	// Attempts is how often a request is sent at most, the first time included; 0 is
	// 3, and 1 never sends again.
	Attempts int
	// MaxWait is the longest that a request waits for a time that the server told, or
	// in line; 0 is 60 s. A time that is longer is not waited for, and not shortened
	// either: the response comes back at once, and GaveUp tells the time.
	MaxWait time.Duration
	// Backoff is the wait where the server told none.
	Backoff Backoff
	// RetryRefused sends requests again that are not idempotent and have no
	// Idempotency-Key, when they got a 429: the server refused before acting. Others
	// are never sent again without one.
	RetryRefused bool
	// Budget bounds retries by what is sent anyway, host by host.
	Budget Budget
	// Pace says how what the server says remains is used.
	Pace Pace
	// Adaptive is K of adaptive throttling: once a host accepts less than one in K
	// requests, more and more are refused here without being sent. 0 is off; 2 is
	// usual.
	Adaptive float64
	// Limit is an outbound limit of the program's own, asked before each attempt; nil
	// is none. A *comporta.Limiter is one; with a store in Redis several processes
	// keep within one limit.
	Limit Outbound
	// Account says on whose account of Limit a request goes, and for how many units;
	// nil is its host, and one.
	Account func(*http.Request) (identity string, cost int64)
	// Partition tells requests apart that the server counts apart, such as those with
	// different API keys; nil is that it counts all requests to a host together. It
	// is kept in memory as returned: no secret in the clear.
	Partition func(*http.Request) string
	// MaxWaiters is how many requests may be in line, for each host and partition; 0
	// is 10,000.
	MaxWaiters int
	// AttemptHeader, where it names a field, tells the server which attempt it sees,
	// from the second on: X-Retry-Attempt is common.
	AttemptHeader string
	// ExpectAbove is the size of a body from which the server is asked first (Expect:
	// 100-continue), so that a refusal costs no upload; bodies of unknown size are
	// asked for too. 0 is 1 MiB; negative is never.
	ExpectAbove int64
	// Observe is told of everything that happens, by the goroutines to which it
	// happens: it must be fast and safe for concurrent use.
	Observe func(Event)
	// Random is uniform in [0, 1); nil is that of math/rand/v2. It must be safe for
	// concurrent use.
	Random func() float64
}

// An Outbound is a limit of the program's own: *comporta.Limiter is one.
type Outbound interface {
	Take(ctx context.Context, identity string, cost int64) (comporta.Decision, error)
}

// A Backoff is a caller's own wait: before attempt n+1, min(Cap, Base·2^(n−1)),
// with jitter.
type Backoff struct {
	// Base is 500 ms and Cap is 30 s where they are 0.
	Base, Cap time.Duration
	Jitter    Jitter
}

// A Jitter says how chance is mixed into a wait of the caller's own choice, v.
// The time that a server told is never shortened, whatever the jitter.
//
// Source: Exponential Backoff and Jitter, AWS Architecture Blog, 2015.
type Jitter uint8

const (
	Full         Jitter = iota // between 0 and v
	Equal                      // between v/2 and v
	Decorrelated               // between Base and three times the wait before, at most Cap
	Additive                   // v and up to a tenth of it more
	NoJitter                   // v
)

// A Budget bounds retries, host by host, so that callers do not multiply the
// load of a server that fails.
type Budget struct {
	// Percent of the first attempts is what retries may be in the long run; 0 is 10,
	// and negative is without a budget. One retry a second is always allowed.
	Percent float64
	// Reserve is how many retries may come at once; 0 is 10.
	Reserve int
}

// A Pace says how what the server says remains is used.
type Pace uint8

const (
	// Gentle goes freely while more than half of a limit remains, then spreads the
	// rest over the time to the reset, with at most a second between two requests.
	Gentle Pace = iota
	// Strict spreads all that remains over the time to the reset. Where that is longer
	// than a request may wait, it fails at once.
	Strict
	// Off looks at nothing but refusals.
	Off
)
