package grpcclient_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/client/grpcclient"
)

type watching = grpc.ServerStreamingServer[health.HealthCheckResponse]

var serving = &health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}

// refuseFirst refuses the first stream, with the pushback of a second, and any
// other sends two messages.
func refuseFirst(s watching, n int) error {
	if n == 1 {
		return refuseIn(s, "1000")
	}
	return errors.Join(s.Send(serving), s.Send(serving))
}

func refuseIn(s grpc.ServerStream, pushback string) error {
	s.SetTrailer(metadata.Pairs("grpc-retry-pushback-ms", pushback))
	return status.Error(codes.ResourceExhausted, "over the limit")
}

func (d *dialled) open(t *testing.T, ctx context.Context) grpc.ServerStreamingClient[health.HealthCheckResponse] {
	t.Helper()
	s, err := d.Watch(ctx, &health.HealthCheckRequest{Service: "a"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drain is how many messages came, and the end.
func drain(s grpc.ServerStreamingClient[health.HealthCheckResponse]) (messages int, end error) {
	for {
		if _, err := s.Recv(); err != nil {
			return messages, err
		}
		messages++
	}
}

func TestServerStreamIsOpenedAgain(t *testing.T) {
	srv := &server{watch: refuseFirst}
	bubble(t, srv, exact(), grpcclient.Options{}, func(t *testing.T, d *dialled) {
		if n, err := drain(d.open(t, t.Context())); n != 2 || err != io.EOF {
			t.Errorf("got %d messages, then %v; want 2, then EOF", n, err)
		}
		if diff := cmp.Diff([]time.Duration{0, time.Second}, srv.seen()); diff != "" {
			t.Errorf("attempts (−want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a", "a"}, srv.services); diff != "" {
			t.Errorf("requests (−want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"-", "1"}, srv.before); diff != "" {
			t.Errorf("grpc-previous-rpc-attempts (−want +got):\n%s", diff)
		}
	})
}

// A server that sends its header before it refuses has not answered: gRPC's own
// retries stop there, these do not.
func TestServerStreamRefusedWithHeader(t *testing.T) {
	srv := &server{watch: func(s watching, n int) error {
		if err := s.SetHeader(metadata.Pairs("ratelimit", `"a";r=0;t=1`)); err != nil {
			return err
		}
		return refuseFirst(s, n)
	}}
	bubble(t, srv, exact(), grpcclient.Options{}, func(t *testing.T, d *dialled) {
		if n, err := drain(d.open(t, t.Context())); n != 2 || err != io.EOF {
			t.Errorf("got %d messages, then %v; want 2, then EOF", n, err)
		}
	})
}

// A program that asks for the header before it receives gets that of the stream
// that was accepted.
func TestHeaderOfTheStreamOpenedAgain(t *testing.T) {
	srv := &server{watch: func(s watching, n int) error {
		if n > 1 {
			if err := s.SetHeader(metadata.Pairs("n", "second")); err != nil {
				return err
			}
		}
		return refuseFirst(s, n)
	}}
	bubble(t, srv, exact(), grpcclient.Options{}, func(t *testing.T, d *dialled) {
		s := d.open(t, t.Context())
		if md, err := s.Header(); err != nil || cmp.Diff([]string{"second"}, md.Get("n")) != "" {
			t.Errorf("got the header %v, %v; want that of the second stream", md, err)
		}
		if n, err := drain(s); n != 2 || err != io.EOF {
			t.Errorf("got %d messages, then %v; want 2, then EOF", n, err)
		}
	})
}

// Once a program has seen a header, another stream would not be that one.
func TestSeenHeaderIsNotReplaced(t *testing.T) {
	srv := &server{watch: func(s watching, n int) error {
		if err := s.SendHeader(metadata.Pairs("n", "first")); err != nil {
			return err
		}
		return refuseIn(s, "1000")
	}}
	bubble(t, srv, exact(), grpcclient.Options{Idempotent: every}, func(t *testing.T, d *dialled) {
		s := d.open(t, t.Context())
		if md, err := s.Header(); md == nil || err != nil {
			t.Errorf("got the header %v, %v", md, err)
		}
		if n, err := drain(s); n != 0 || status.Code(err) != codes.ResourceExhausted {
			t.Errorf("got %d messages, then %v; want RESOURCE_EXHAUSTED", n, err)
		}
		if got := srv.seen(); len(got) != 1 {
			t.Errorf("the stream was opened at %v; want once", got)
		}
	})
}

// A refusal in the middle of a stream is the program's to see, and shuts the gate.
func TestRefusedInTheMiddle(t *testing.T) {
	srv := &server{check: func(context.Context, int) error { return nil }}
	srv.watch = func(s watching, n int) error {
		if err := s.Send(serving); err != nil {
			return err
		}
		return refuseIn(s, "5000")
	}
	bubble(t, srv, exact(), grpcclient.Options{Idempotent: every}, func(t *testing.T, d *dialled) {
		s := d.open(t, t.Context())
		for range 2 { // the end stays
			if _, err := drain(s); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("got %v; want RESOURCE_EXHAUSTED", err)
			}
		}
		if err := d.ask(t.Context(), "b"); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]time.Duration{0, 5 * time.Second}, srv.seen()); diff != "" {
			t.Errorf("attempts (−want +got):\n%s", diff)
		}
		if got := d.limits.Stats(); got.Attempts != 2 {
			t.Errorf("got %+v; want 2 attempts", got)
		}
	})
}

// A stream that stays refused ends with the server's status, and the reason.
func TestServerStreamGivesUp(t *testing.T) {
	srv := &server{watch: func(s watching, n int) error { return refuseIn(s, "1000") }}
	bubble(t, srv, exact(), grpcclient.Options{}, func(t *testing.T, d *dialled) {
		s := d.open(t, t.Context())
		for range 2 { // the end stays
			_, err := drain(s)
			if reason(err) != client.ReasonAttempts || status.Code(err) != codes.ResourceExhausted || status.Convert(err).Message() != "over the limit" {
				t.Errorf("got %v (%q); want the server's own status, after all attempts", err, reason(err))
			}
		}
		if diff := cmp.Diff([]string{"1000"}, s.Trailer().Get("grpc-retry-pushback-ms")); diff != "" {
			t.Errorf("the trailer (−want +got):\n%s", diff)
		}
		if got := srv.seen(); len(got) != 3 {
			t.Errorf("the stream was opened at %v; want three times", got)
		}
	})
}

// Where the client sends more than one message, nothing can be sent again.
func TestUploadsAreNotOpenedAgain(t *testing.T) {
	srv := &server{either: func(s grpc.ServerStream, n int) error {
		if err := s.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		return refuseIn(s, "5000")
	}}
	o := exact()
	o.RetryRefused = true
	for number, kind := range []string{"both ways", "upload"} {
		srv.arrivals = nil
		t.Run(kind, func(t *testing.T) {
			bubble(t, srv, o, grpcclient.Options{Idempotent: every}, func(t *testing.T, d *dialled) {
				for range 2 {
					s, err := d.stream(t.Context(), number)
					if err != nil {
						t.Fatal(err)
					}
					if err := s.SendMsg(empty); err != nil {
						t.Error(err)
					}
					if err := s.RecvMsg(&emptypb.Empty{}); status.Code(err) != codes.ResourceExhausted || reason(err) != client.ReasonUnsafe {
						t.Errorf("got %v (%q); want RESOURCE_EXHAUSTED, not to be sent again", err, reason(err))
					}
				}
				// The second waited for the first one's time before it was opened.
				if diff := cmp.Diff([]time.Duration{0, 5 * time.Second}, srv.seen()); diff != "" {
					t.Errorf("attempts (−want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestStreamBothWaysGoesOn(t *testing.T) {
	srv := &server{either: func(s grpc.ServerStream, n int) error {
		for {
			if err := s.RecvMsg(&emptypb.Empty{}); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			if err := s.SendMsg(empty); err != nil {
				return err
			}
		}
	}}
	bubble(t, srv, exact(), grpcclient.Options{}, func(t *testing.T, d *dialled) {
		s, err := d.stream(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := errors.Join(s.SendMsg(empty), s.RecvMsg(&emptypb.Empty{})); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(s.CloseSend(), s.RecvMsg(&emptypb.Empty{})); !errors.Is(err, io.EOF) {
			t.Errorf("got %v; want EOF", err)
		}
	})
}

// A stream that its program abandons leaves nothing behind, however it does so:
// the bubble would burst.
func TestAbandonedStreams(t *testing.T) {
	silent := func(s watching, n int) error {
		<-s.Context().Done()
		return s.Context().Err()
	}
	for name, abandon := range map[string]func(d *dialled, cancel func()){
		"cancelled": func(_ *dialled, cancel func()) { cancel() },
		"closed":    func(d *dialled, _ func()) { d.conn.Close() },
		"late":      func(*dialled, func()) { time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, &server{watch: silent}, exact(), grpcclient.Options{}, func(t *testing.T, d *dialled) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				d.open(t, ctx)
				synctest.Wait()
				abandon(d, cancel)
				synctest.Wait()
				if got := d.limits.Stats(); got.Attempts != 1 || got.Refused+got.Failed+got.Overloaded != 0 {
					t.Errorf("got %+v; want one attempt, of which nothing was learnt", got)
				}
			})
		})
	}
}

// A program that gives up while its stream waits to be opened again.
func TestCancelledBetweenAttempts(t *testing.T) {
	srv := &server{watch: func(s watching, n int) error { return refuseIn(s, "5000") }}
	bubble(t, srv, exact(), grpcclient.Options{}, func(t *testing.T, d *dialled) {
		ctx, cancel := context.WithCancel(t.Context())
		s := d.open(t, ctx)
		time.AfterFunc(time.Second, cancel)
		if _, err := drain(s); status.Code(err) != codes.Canceled {
			t.Errorf("got %v; want CANCELLED", err)
		}
		if got := time.Since(srv.start); got != time.Second {
			t.Errorf("it took %v", got)
		}
	})
}

// A stream that the gate holds for longer than its deadline is not opened.
func TestStreamNotOpened(t *testing.T) {
	srv := &server{watch: func(s watching, n int) error { return refuseIn(s, "5000") }}
	o := exact()
	o.Attempts = 1
	bubble(t, srv, o, grpcclient.Options{}, func(t *testing.T, d *dialled) {
		drain(d.open(t, t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := d.Watch(ctx, &health.HealthCheckRequest{})
		if status.Code(err) != codes.ResourceExhausted || reason(err) != client.ReasonGate {
			t.Errorf("got %v (%q); want RESOURCE_EXHAUSTED for the gate", err, reason(err))
		}
	})
}

// forgetful credentials are those of one call only.
type forgetful struct{ calls atomic.Int32 }

func (f *forgetful) RequireTransportSecurity() bool { return false }

func (f *forgetful) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if f.calls.Add(1) > 1 {
		return nil, status.Error(codes.Unauthenticated, "no more credentials")
	}
	return nil, nil
}

// A stream that cannot be opened again ends with why it cannot.
func TestOpeningAgainFails(t *testing.T) {
	srv := &server{watch: refuseFirst}
	once := []grpc.DialOption{grpc.WithPerRPCCredentials(&forgetful{})}
	bubbleWith(t, srv, exact(), grpcclient.Options{}, once, func(t *testing.T, d *dialled) {
		if n, err := drain(d.open(t, t.Context())); n != 0 || status.Code(err) != codes.Unauthenticated {
			t.Errorf("got %d messages, then %v; want UNAUTHENTICATED", n, err)
		}
	})
}
