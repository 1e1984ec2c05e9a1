package grpcclient

import (
	"context"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/comporta/comporta/client"
)

// Options say about methods what client.Options cannot say. A method is its full
// name, such as /grpc.health.v1.Health/Check. The functions must be safe for
// concurrent use.
type Options struct {
	// Idempotent says which methods may be sent again though the server may have
	// acted; nil is none.
	Idempotent func(method string) bool
	// Account says on whose account of client.Options.Limit a call goes, and for how
	// many units; nil is the server's canonical target, and one.
	Account func(ctx context.Context, method string) (identity string, cost int64)
	// Partition tells calls apart that the server counts apart, such as those with
	// different API keys; nil is that it counts all calls together. It is kept in
	// memory as returned: no secret in the clear.
	Partition func(ctx context.Context, method string) string
}

// An Interceptor keeps calls within limits. It is safe for concurrent use, by any
// number of connections.
type Interceptor struct {
	caller       *client.Caller
	options      Options
	retryRefused bool
}

// New is an interceptor. Of o, Transport, Account, Partition, AttemptHeader and
// ExpectAbove are without effect: the number of an attempt always goes along, from
// the second on, as grpc-previous-rpc-attempts.
func New(o client.Options, calls Options) *Interceptor {
	return &Interceptor{caller: client.NewCaller(o), options: calls, retryRefused: o.RetryRefused}
}

// DialOptions are both interceptors, after those that are there already, and
// gRPC's own retries turned off.
func (i *Interceptor) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(i.Unary()),
		grpc.WithChainStreamInterceptor(i.Stream()),
		grpc.WithDisableRetry(),
	}
}

// Stats are the counts so far. A stream is one attempt, however many messages it
// carries, and each time that it is opened again is another.
func (i *Interceptor) Stats() client.Stats { return i.caller.Stats() }

// call is what the caller is to know of a call, before it is sent. Whether it is
// sent again is settled after each attempt: see invited.
func (i *Interceptor) call(ctx context.Context, method string, cc *grpc.ClientConn) client.Call {
	c := client.Call{Target: cc.CanonicalTarget(), Cost: 1}
	c.Identity = c.Target
	if i.options.Account != nil {
		c.Identity, c.Cost = i.options.Account(ctx, method)
	}
	if i.options.Partition != nil {
		c.Partition = i.options.Partition(ctx, method)
	}
	c.Repeat = i.options.Idempotent != nil && i.options.Idempotent(method)
	return c
}

// numbered is the context of an attempt, from 1: later ones tell the server how
// many there were before (gRFC A6).
func numbered(ctx context.Context, attempt int) context.Context {
	if attempt == 1 {
		return ctx
	}
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	if md == nil {
		md = metadata.MD{}
	}
	md.Set("grpc-previous-rpc-attempts", strconv.Itoa(attempt-1))
	return metadata.NewOutgoingContext(ctx, md)
}
