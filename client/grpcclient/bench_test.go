package grpcclient_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/client/grpcclient"
)

// What the interceptor costs a call that is sent at once, with and without hints
// in the answer.
func BenchmarkUnary(b *testing.B) {
	for name, header := range map[string]metadata.MD{
		"plain": metadata.Pairs("content-type", "application/grpc"),
		"hints": metadata.Pairs("content-type", "application/grpc", "ratelimit-policy", `"a";q=1000;w=60`, "ratelimit", `"a";r=999;t=60`),
	} {
		b.Run(name, func(b *testing.B) {
			d := dial(b, bufconn.Listen(1), client.Options{}, grpcclient.Options{})
			defer d.conn.Close()
			unary, ctx := d.limits.Unary(), context.Background()
			invoke := func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
				for _, o := range opts {
					if o, ok := o.(grpc.HeaderCallOption); ok {
						*o.HeaderAddr = header
					}
				}
				return nil
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := unary(ctx, "/a/b", nil, nil, d.conn, invoke); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
