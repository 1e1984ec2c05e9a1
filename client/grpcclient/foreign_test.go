package grpcclient_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/client/grpcclient"
)

// Answers of HTTP servers in front of gRPC ones, byte for byte as they send them.
func TestForeignRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		header http.Header
		body   string
		code   codes.Code
		again  time.Duration
		reason client.Reason
	}{
		{
			name: "our gateway's, trailers only", status: 200,
			header: http.Header{"Content-Type": {"application/grpc"}, "Cache-Control": {"no-store"}, "Grpc-Status": {"8"}, "Grpc-Message": {"over the limit"}, "Grpc-Retry-Pushback-Ms": {"1700"}, "Ratelimit": {`"all";r=0;t=2`}, "Retry-After": {"2"}},
			code:   codes.ResourceExhausted, again: 2 * time.Second, reason: client.ReasonAttempts,
		},
		{
			name: "our gateway's, for longer than a pushback holds", status: 200,
			header: http.Header{"Content-Type": {"application/grpc"}, "Grpc-Status": {"8"}, "Grpc-Retry-Pushback-Ms": {"-1"}},
			code:   codes.ResourceExhausted, reason: client.ReasonForbidden,
		},
		{
			name: "a proxy's 429", status: 429, header: http.Header{"Content-Type": {"text/html"}, "Retry-After": {"2"}}, body: "slow down",
			code: codes.Unavailable, again: 500 * time.Millisecond, reason: client.ReasonAttempts,
		},
		{
			name: "a proxy's 503", status: 503, header: http.Header{"Content-Type": {"text/html"}}, body: "too much",
			code: codes.Unavailable, reason: client.ReasonUnsafe,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, calls := time.Now(), atomic.Int32{}
				var last atomic.Int64
				srv := &http.Server{Protocols: &http.Protocols{}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					calls.Add(1)
					last.Store(int64(time.Since(start)))
					for name, values := range test.header {
						w.Header()[name] = values
					}
					w.WriteHeader(test.status)
					w.Write([]byte(test.body))
				})}
				srv.Protocols.SetUnencryptedHTTP2(true)
				l := bufconn.Listen(1 << 16)
				go srv.Serve(l)
				o := exact()
				o.Attempts, o.RetryRefused = 2, true
				d := dial(t, l, o, grpcclient.Options{})
				err := d.ask(t.Context(), "")
				if status.Code(err) != test.code || reason(err) != test.reason {
					t.Errorf("got %v (%q); want %v (%q)", err, reason(err), test.code, test.reason)
				}
				want := int32(1)
				if test.again > 0 {
					want = 2
				}
				if diff := cmp.Diff([]int64{int64(want), int64(test.again)}, []int64{int64(calls.Load()), last.Load()}); diff != "" {
					t.Errorf("attempts, and when the last one came (−want +got):\n%s", diff)
				}
				d.conn.Close()
				srv.Close()
			})
		})
	}
}

// Where nothing listens, the call was lost: only what is idempotent is sent again.
func TestNoConnection(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := bufconn.Listen(1)
			l.Close()
			d := dial(t, l, exact(), grpcclient.Options{Idempotent: func(string) bool { return idempotent }})
			err := d.ask(t.Context(), "")
			want, attempts := client.ReasonUnsafe, uint64(1)
			if idempotent {
				want, attempts = client.ReasonAttempts, 3
			}
			if got := d.limits.Stats(); status.Code(err) != codes.Unavailable || reason(err) != want || got.Failed != attempts {
				t.Errorf("idempotent %v: got %v (%q), %+v; want UNAVAILABLE after %d failed attempts", idempotent, err, reason(err), got, attempts)
			}
			d.conn.Close()
		})
	}
}
