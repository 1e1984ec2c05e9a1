package grpcclient

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/comporta/comporta/client"
)

// Unary is the interceptor of calls with one request and one response. The call
// options are used for each attempt: those that are told of the end of a call,
// such as grpc.OnFinish, are told of the end of each.
//
// The error of a call that was sent has the status of its last attempt; one that
// was not sent fails with RESOURCE_EXHAUSTED, with the time to wait as RetryInfo
// where it is known, or with UNAVAILABLE where adaptive throttling refused it or the
// outbound limit could not be asked. Of both, errors.As finds the
// *client.RateLimitError that says why it was not sent, or not again.
func (i *Interceptor) Unary() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		var last error
		call := i.call(ctx, method, cc)
		err := i.caller.Do(ctx, &call, func(attemptCtx context.Context, n int) client.Answer {
			var header, trailer metadata.MD
			with := append(slices.Clip(opts), grpc.Header(&header), grpc.Trailer(&trailer))
			last = invoke(numbered(attemptCtx, n), method, req, reply, cc, with...)
			a := answer(ctx, last, header, trailer, now())
			call.Resend = i.invited(&a)
			return a
		})
		return outcome(ctx, last, err)
	}
}
