package grpcclient_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/client/grpcclient"
)

// refusal is a status with a RetryInfo, where wait is not 0.
func refusal(code codes.Code, message string, wait time.Duration) error {
	s := status.New(code, message)
	if wait == 0 {
		return s.Err()
	}
	s, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	if err != nil {
		panic(err)
	}
	return s.Err()
}

// reason is why a call was not sent, or not again; "" where nothing says so.
func reason(err error) client.Reason {
	var why *client.RateLimitError
	if errors.As(err, &why) {
		return why.Reason
	}
	return ""
}

// What a server says of its first answer, and when the second attempt comes.
func TestWhatIsSentAgain(t *testing.T) {
	const pushback = "grpc-retry-pushback-ms"
	const exhausted, unavailable = codes.ResourceExhausted, codes.Unavailable
	large := "grpc: received message larger than max (5 vs. 4)"
	for _, test := range []struct {
		name            string
		code            codes.Code
		message         string
		info            time.Duration
		header, trailer []string
		refused, safe   bool // RetryRefused, Idempotent
		again           time.Duration
		reason          client.Reason
	}{
		{name: "pushback", code: exhausted, trailer: []string{pushback, "700"}, again: 700 * time.Millisecond},
		{name: "pushback with a header", code: exhausted, header: []string{"ratelimit", `"a";r=0;t=2`}, trailer: []string{pushback, "2000"}, again: 2 * time.Second},
		{name: "pushback of the largest", code: exhausted, trailer: []string{pushback, "2147483647"}, reason: client.ReasonTooLong},
		{name: "pushback too large", code: exhausted, trailer: []string{pushback, "2147483648"}, safe: true, reason: client.ReasonForbidden},
		{name: "pushback −1", code: exhausted, trailer: []string{pushback, "-1"}, safe: true, reason: client.ReasonForbidden},
		{name: "pushback unreadable", code: exhausted, trailer: []string{pushback, "1s"}, safe: true, reason: client.ReasonForbidden},
		{name: "pushback twice", code: exhausted, trailer: []string{pushback, "700", pushback, "700"}, safe: true, reason: client.ReasonForbidden},
		{name: "pushback −1 beside a time", code: exhausted, info: time.Second, trailer: []string{pushback, "-1"}, safe: true, reason: client.ReasonForbidden},
		{name: "RetryInfo", code: exhausted, info: 3 * time.Second, again: 3 * time.Second},
		{name: "RetryInfo, of two", code: exhausted, info: 3 * time.Second, trailer: []string{pushback, "2000"}, again: 3 * time.Second},
		{name: "pushback, of two", code: exhausted, info: time.Second, trailer: []string{pushback, "2000"}, again: 2 * time.Second},
		{name: "Retry-After in the trailer", code: exhausted, trailer: []string{"retry-after", "4"}, again: 4 * time.Second},
		{name: "Retry-After, of two", code: exhausted, info: time.Second, trailer: []string{"retry-after", "4"}, again: 4 * time.Second},
		{name: "Retry-After in the header", code: exhausted, header: []string{"retry-after", "4"}, again: 4 * time.Second},
		{name: "a reset, from Envoy", code: exhausted, header: []string{"x-ratelimit-limit", "10, 10;w=60", "x-ratelimit-remaining", "0", "x-ratelimit-reset", "30"}, again: 30 * time.Second},
		{name: "a reset of what is not used up", code: exhausted, header: []string{"x-ratelimit-limit", "10, 10;w=60", "x-ratelimit-remaining", "1", "x-ratelimit-reset", "30"}, reason: client.ReasonUnsafe},
		{name: "a reset beside pushback −1", code: exhausted, header: []string{"ratelimit", `"a";r=0;t=2`}, trailer: []string{pushback, "-1"}, safe: true, reason: client.ReasonForbidden},
		{name: "no time", code: exhausted, reason: client.ReasonUnsafe},
		{name: "no time, refused", code: exhausted, refused: true, again: 500 * time.Millisecond},
		{name: "no time, idempotent", code: exhausted, safe: true, again: 500 * time.Millisecond},
		{name: "too large", code: exhausted, message: large, refused: true, safe: true},
		{name: "unavailable", code: unavailable, reason: client.ReasonUnsafe},
		{name: "unavailable, refused", code: unavailable, refused: true, reason: client.ReasonUnsafe},
		{name: "unavailable, a time", code: unavailable, info: time.Second, reason: client.ReasonUnsafe},
		{name: "unavailable, idempotent", code: unavailable, safe: true, again: 500 * time.Millisecond},
		{name: "unavailable, idempotent, a time", code: unavailable, info: 2 * time.Second, safe: true, again: 2 * time.Second},
		{name: "unavailable, pushback", code: unavailable, trailer: []string{pushback, "1500"}, again: 1500 * time.Millisecond},
		{name: "unavailable by Envoy's limit", code: unavailable, trailer: []string{"x-envoy-ratelimited", "true"}, refused: true, again: 500 * time.Millisecond},
		{name: "aborted", code: codes.Aborted, info: time.Second, trailer: []string{pushback, "10"}, refused: true, safe: true},
		{name: "internal", code: codes.Internal, refused: true, safe: true},
		{name: "not found", code: codes.NotFound, refused: true, safe: true},
		{name: "the server's own deadline", code: codes.DeadlineExceeded, refused: true, safe: true, reason: client.ReasonFinal},
	} {
		t.Run(test.name, func(t *testing.T) {
			srv := &server{check: func(ctx context.Context, n int) error {
				if n > 1 {
					return nil
				}
				if test.header != nil {
					if err := grpc.SetHeader(ctx, metadata.Pairs(test.header...)); err != nil {
						t.Error(err)
					}
				}
				tell(ctx, test.trailer...)
				return refusal(test.code, test.message, test.info)
			}}
			o := exact()
			o.RetryRefused = test.refused
			calls := grpcclient.Options{Idempotent: func(method string) bool {
				return test.safe && method == "/grpc.health.v1.Health/Check"
			}}
			bubble(t, srv, o, calls, func(t *testing.T, d *dialled) {
				err := d.ask(t.Context(), "a")
				want, before, code := []time.Duration{0}, []string{"-"}, test.code
				if test.again > 0 {
					want, before, code = append(want, test.again), append(before, "1"), codes.OK
				}
				if diff := cmp.Diff(want, srv.seen()); diff != "" {
					t.Errorf("attempts (−want +got):\n%s", diff)
				}
				if diff := cmp.Diff(before, srv.before); diff != "" {
					t.Errorf("grpc-previous-rpc-attempts (−want +got):\n%s", diff)
				}
				if status.Code(err) != code || reason(err) != test.reason {
					t.Errorf("got %v, %q; want %v, %q", err, reason(err), code, test.reason)
				}
			})
		})
	}
}

// What is said to one call holds for all, on every connection.
func TestGateIsShared(t *testing.T) {
	srv := &server{check: func(ctx context.Context, n int) error {
		if n == 1 {
			tell(ctx, "grpc-retry-pushback-ms", "10000")
			return status.Error(codes.ResourceExhausted, "")
		}
		return nil
	}}
	bubble(t, srv, exact(), grpcclient.Options{}, func(t *testing.T, d *dialled) {
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				if err := d.ask(t.Context(), ""); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		seen := srv.seen()
		if len(seen) != 21 || seen[0] != 0 || seen[1] != 10*time.Second {
			t.Errorf("got %v; want one at 0, and 20 from 10 s", seen)
		}
		if got := d.limits.Stats(); got.Attempts != 21 || got.Retries != 1 || got.Refused != 1 {
			t.Errorf("got %+v; want 21 attempts, 1 of them a retry, 1 refused", got)
		}
	})
}

func TestPartitionsAreApart(t *testing.T) {
	type key struct{}
	srv := &server{check: func(ctx context.Context, n int) error {
		if n == 1 {
			tell(ctx, "grpc-retry-pushback-ms", "10000")
			return status.Error(codes.ResourceExhausted, "")
		}
		return nil
	}}
	o := exact()
	o.Attempts = 1
	calls := grpcclient.Options{Partition: func(ctx context.Context, method string) string { return ctx.Value(key{}).(string) }}
	bubble(t, srv, o, calls, func(t *testing.T, d *dialled) {
		for _, partition := range []string{"a", "b", "a"} {
			d.ask(context.WithValue(t.Context(), key{}, partition), "")
		}
		if diff := cmp.Diff([]time.Duration{0, 0, 10 * time.Second}, srv.seen()); diff != "" {
			t.Errorf("attempts of a, b, a (−want +got):\n%s", diff)
		}
	})
}

// Too large a message is nobody's limit: no gate shuts, whoever says it.
func TestTooLargeShutsNothing(t *testing.T) {
	srv := &server{check: func(ctx context.Context, n int) error { return nil }}
	o := exact()
	o.RetryRefused = true
	bubble(t, srv, o, grpcclient.Options{Idempotent: every}, func(t *testing.T, d *dialled) {
		for _, c := range []struct {
			limit  grpc.CallOption
			reason client.Reason
		}{{grpc.MaxCallSendMsgSize(1), client.ReasonFinal}, {grpc.MaxCallRecvMsgSize(1), ""}} {
			err := d.conn.Invoke(t.Context(), "/grpc.health.v1.Health/Check", durationpb.New(time.Hour+1), empty, c.limit)
			if status.Code(err) != codes.ResourceExhausted || reason(err) != c.reason {
				t.Errorf("got %v (%q); want RESOURCE_EXHAUSTED (%q)", err, reason(err), c.reason)
			}
		}
		if err := d.ask(t.Context(), ""); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]time.Duration{0, 0}, srv.seen()); diff != "" {
			t.Errorf("attempts that came to the server (−want +got):\n%s", diff)
		}
	})
}

// A time past the deadline is not waited for, and a call that would have to wait
// longer than its deadline is not sent; both say how long the wait is.
func TestDeadline(t *testing.T) {
	srv := &server{check: func(ctx context.Context, n int) error {
		tell(ctx, "grpc-retry-pushback-ms", "5000")
		return status.Error(codes.ResourceExhausted, "over the limit")
	}}
	bubble(t, srv, exact(), grpcclient.Options{}, func(t *testing.T, d *dialled) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		for i, want := range []struct {
			reason   client.Reason
			attempts int
		}{{client.ReasonDeadline, 1}, {client.ReasonGate, 0}} {
			err := d.ask(ctx, "")
			var why *client.RateLimitError
			if !errors.As(err, &why) || why.Reason != want.reason || why.RetryAfter != 5*time.Second || why.Attempts != want.attempts {
				t.Errorf("call %d: got %v, %+v; want %v", i, err, why, want)
			}
			if status.Code(err) != codes.ResourceExhausted {
				t.Errorf("call %d: got %v; want RESOURCE_EXHAUSTED", i, err)
			}
			if i == 1 {
				info, ok := append(status.Convert(err).Details(), nil)[0].(*errdetails.RetryInfo)
				if !ok || info.RetryDelay.AsDuration() != 5*time.Second {
					t.Errorf("got the details %v; want a RetryInfo of 5 s", status.Convert(err).Details())
				}
			}
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("it took %v", waited)
		}
	})
}

// A caller that gives up while it waits gets its own status, at once.
func TestCancelledInLine(t *testing.T) {
	srv := &server{check: func(ctx context.Context, n int) error {
		tell(ctx, "grpc-retry-pushback-ms", "5000")
		return status.Error(codes.ResourceExhausted, "")
	}}
	bubble(t, srv, exact(), grpcclient.Options{}, func(t *testing.T, d *dialled) {
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := d.ask(ctx, ""); status.Code(err) != codes.Canceled {
			t.Errorf("got %v; want CANCELLED", err)
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("it took %v", waited)
		}
	})
}

func TestBudget(t *testing.T) {
	srv := &server{check: func(ctx context.Context, n int) error { return status.Error(codes.Unavailable, "") }}
	o := exact()
	o.Budget = client.Budget{Reserve: 3}
	bubble(t, srv, o, grpcclient.Options{Idempotent: every}, func(t *testing.T, d *dialled) {
		var all sync.WaitGroup
		spent := make(chan struct{}, 10)
		for range 10 {
			all.Go(func() {
				if reason(d.ask(t.Context(), "")) == client.ReasonBudget {
					spent <- struct{}{}
				}
			})
		}
		all.Wait()
		if got := d.limits.Stats(); got.Retries > 3+2 || len(spent) < 10-3 {
			t.Errorf("got %d retries, and %d calls that ended for the budget; want 3 at once and one a second", got.Retries, len(spent))
		}
	})
}

func TestAdaptive(t *testing.T) {
	srv := &server{check: func(ctx context.Context, n int) error { return status.Error(codes.Unavailable, "") }}
	o := exact()
	o.Adaptive, o.Random = 2, func() float64 { return 0 }
	bubble(t, srv, o, grpcclient.Options{}, func(t *testing.T, d *dialled) {
		throttled := 0
		for range 100 {
			if err := d.ask(t.Context(), ""); reason(err) == client.ReasonThrottle {
				throttled++
				if status.Code(err) != codes.Unavailable {
					t.Errorf("got %v; want UNAVAILABLE", err)
				}
			}
		}
		if throttled == 0 || throttled+len(srv.seen()) != 100 {
			t.Errorf("%d of 100 calls were not sent, and %d came", throttled, len(srv.seen()))
		}
	})
}

// What a server says remains holds the next call.
func TestHints(t *testing.T) {
	for _, in := range []string{"header", "trailer"} {
		t.Run(in, func(t *testing.T) {
			srv := &server{check: func(ctx context.Context, n int) error {
				md := metadata.Pairs("ratelimit-policy", `"a";q=10;w=60`, "ratelimit", `"a";r=0;t=7`)
				if in == "header" {
					return grpc.SetHeader(ctx, md)
				}
				return grpc.SetTrailer(ctx, md)
			}}
			bubble(t, srv, exact(), grpcclient.Options{}, func(t *testing.T, d *dialled) {
				for range 2 {
					if err := d.ask(t.Context(), ""); err != nil {
						t.Error(err)
					}
				}
				if diff := cmp.Diff([]time.Duration{0, 7 * time.Second}, srv.seen()); diff != "" {
					t.Errorf("attempts (−want +got):\n%s", diff)
				}
			})
		})
	}
}

// An outbound is a limit of the program's own that writes down who asked.
type outbound struct{ asked []string }

func (o *outbound) Take(_ context.Context, identity string, cost int64) (comporta.Decision, error) {
	if identity == "broken" {
		return comporta.Decision{}, errors.New("no store")
	}
	o.asked = append(o.asked, fmt.Sprint(identity, " ", cost))
	return comporta.Decision{Allowed: true}, nil
}

func TestAccount(t *testing.T) {
	srv := &server{check: func(ctx context.Context, n int) error { return nil }}
	limit := &outbound{}
	o := exact()
	o.Limit = limit
	bubble(t, srv, o, grpcclient.Options{}, func(t *testing.T, d *dialled) {
		d.ask(t.Context(), "")
	})
	bubble(t, srv, o, grpcclient.Options{Account: func(_ context.Context, method string) (string, int64) {
		return method, 3
	}}, func(t *testing.T, d *dialled) {
		d.ask(t.Context(), "")
	})
	if diff := cmp.Diff([]string{"passthrough:///server 1", "/grpc.health.v1.Health/Check 3"}, limit.asked); diff != "" {
		t.Errorf("what was taken (−want +got):\n%s", diff)
	}
}

// A limit that cannot be asked is no refusal of the server's.
func TestBrokenLimit(t *testing.T) {
	srv := &server{check: func(ctx context.Context, n int) error { return nil }}
	o := exact()
	o.Limit = &outbound{}
	broken := func(context.Context, string) (string, int64) { return "broken", 1 }
	bubble(t, srv, o, grpcclient.Options{Account: broken}, func(t *testing.T, d *dialled) {
		if err := d.ask(t.Context(), ""); status.Code(err) != codes.Unavailable || reason(err) != client.ReasonLimit {
			t.Errorf("got %v (%q); want UNAVAILABLE for the limit", err, reason(err))
		}
		if got := srv.seen(); len(got) != 0 {
			t.Errorf("the server saw the call at %v", got)
		}
	})
}
