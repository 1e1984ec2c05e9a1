package grpcclient

import (
	"context"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/comporta/comporta/client"
)

// What no test of ours can bring a real server to say, in the words that are
// heard from others.
func TestKinds(t *testing.T) {
	heard := metadata.Pairs("content-type", "application/grpc")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx     context.Context
		code    codes.Code
		message string
		header  metadata.MD
		kind    client.Kind
		final   bool
	}{
		{code: codes.ResourceExhausted, header: heard, kind: client.Refused},
		{code: codes.ResourceExhausted, kind: client.Refused}, // in one process there is no header
		{code: codes.ResourceExhausted, message: "stream terminated by RST_STREAM with error code: ENHANCE_YOUR_CALM", kind: client.Overloaded},
		{code: codes.ResourceExhausted, message: "too many RST_STREAM", header: heard, kind: client.Refused},
		{code: codes.ResourceExhausted, message: "trying to send message larger than max (5 vs. 4)", kind: client.Cancelled},
		{code: codes.ResourceExhausted, message: "trying to send message larger than max (5 vs. 4)", header: heard, kind: client.Accepted},
		{code: codes.ResourceExhausted, message: "grpc: received message after decompression larger than max 4", header: heard, kind: client.Accepted},
		{code: codes.ResourceExhausted, message: "SERVER: Received message larger than max (5 vs. 4)", header: heard, kind: client.Accepted},
		{code: codes.ResourceExhausted, message: "gRPC message exceeds maximum size 4: 5", header: heard, kind: client.Accepted},
		{code: codes.ResourceExhausted, message: "Received message exceeds the maximum configured message size.", header: heard, kind: client.Accepted},
		{code: codes.Unavailable, header: heard, kind: client.Overloaded},
		{code: codes.Unavailable, message: "connection error", kind: client.Failed},
		{code: codes.Canceled, header: heard, kind: client.Accepted},
		{code: codes.Canceled, message: "grpc: the client connection is closing", kind: client.Cancelled},
		{code: codes.Canceled, header: heard, ctx: cancelled, kind: client.Cancelled},
		{code: codes.DeadlineExceeded, header: heard, kind: client.Failed, final: true},
		{code: codes.DeadlineExceeded, header: heard, ctx: cancelled, kind: client.Cancelled},
		{code: codes.ResourceExhausted, header: heard, ctx: cancelled, kind: client.Refused},
		{code: codes.Unknown, header: heard, kind: client.Accepted},
	} {
		ctx := c.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		kind, final := kind(ctx, status.New(c.code, c.message), c.header, nil)
		if kind != c.kind || final != c.final {
			t.Errorf("%v %q, header %v: got %d, final %v; want %d, %v", c.code, c.message, c.header != nil, kind, final, c.kind, c.final)
		}
	}
}

func TestRetryInfo(t *testing.T) {
	info := func(d *durationpb.Duration) *errdetails.RetryInfo { return &errdetails.RetryInfo{RetryDelay: d} }
	for _, c := range []struct {
		name  string
		delay *durationpb.Duration
		wait  time.Duration
		told  bool
	}{
		{"nothing", nil, 0, false},
		{"zero", &durationpb.Duration{}, 0, true},
		{"negative", durationpb.New(-time.Second), 0, false},
		{"out of range", &durationpb.Duration{Seconds: 1 << 62}, 0, false},
		{"longer than Go's", &durationpb.Duration{Seconds: 300_000_000_000}, 1<<63 - 1, true},
	} {
		s, err := status.New(codes.ResourceExhausted, "").WithDetails(&errdetails.QuotaFailure{}, info(c.delay))
		if err != nil {
			t.Fatal(err)
		}
		if wait, told := retryInfo(s); wait != c.wait || told != c.told {
			t.Errorf("%s: got %v, %v; want %v, %v", c.name, wait, told, c.wait, c.told)
		}
	}
	s, err := status.New(codes.ResourceExhausted, "").WithDetails(info(durationpb.New(time.Second)), info(durationpb.New(2*time.Second)), info(durationpb.New(0)))
	if err != nil {
		t.Fatal(err)
	}
	if wait, _ := retryInfo(s); wait != 2*time.Second {
		t.Errorf("of several: got %v; want the longest, 2 s", wait)
	}
}
