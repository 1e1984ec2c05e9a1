package grpcclient_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/comporta/comporta/client/grpcclient"
)

// Retries of retries multiply: neither gRPC's own, which a service config asks
// for, nor those of another interceptor come on top.
func TestRetriesDoNotMultiply(t *testing.T) {
	srv := &server{
		check: func(ctx context.Context, n int) error { return status.Error(codes.Unavailable, "") },
		watch: func(s watching, n int) error { return status.Error(codes.Unavailable, "") },
	}
	own := grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["UNAVAILABLE"]}}]}`)
	outer := grpcclient.New(exact(), grpcclient.Options{Idempotent: every})
	bubbleWith(t, srv, exact(), grpcclient.Options{Idempotent: every}, append(outer.DialOptions(), own), func(t *testing.T, d *dialled) {
		if err := d.ask(t.Context(), ""); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v; want UNAVAILABLE", err)
		}
		if got := srv.seen(); len(got) != 3 {
			t.Errorf("the server saw the call at %v; want three times", got)
		}
		if n, err := drain(d.open(t, t.Context())); n != 0 || status.Code(err) != codes.Unavailable {
			t.Errorf("got %d messages, then %v; want UNAVAILABLE", n, err)
		}
		if got := srv.seen(); len(got) != 6 {
			t.Errorf("the server saw the call and the stream at %v; want three times each", got)
		}
	})
}

// Streams at the same time, refused now and then, some asked for their header
// while they are received from: each gets all its messages.
func TestManyStreams(t *testing.T) {
	srv := &server{watch: func(s watching, n int) error {
		if n%3 == 0 {
			return refuseIn(s, "100")
		}
		for range 3 {
			if err := s.Send(serving); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	}}
	o := exact()
	o.Attempts, o.Budget.Percent = 20, -1
	bubble(t, srv, o, grpcclient.Options{}, func(t *testing.T, d *dialled) {
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				s, err := d.Watch(t.Context(), &health.HealthCheckRequest{})
				if err != nil {
					t.Error(err)
					return
				}
				if i%2 == 0 {
					all.Go(func() { s.Header() })
				}
				if n, err := drain(s); n != 3 || err != io.EOF {
					t.Errorf("got %d messages, then %v", n, err)
				}
			})
		}
		all.Wait()
		if got := d.limits.Stats(); got.Refused == 0 || int(got.Attempts) != len(srv.seen()) {
			t.Errorf("got %+v; want refusals, and %d attempts", got, len(srv.seen()))
		}
	})
}
