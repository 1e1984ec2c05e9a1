package grpcclient_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/client/grpcclient"
)

// A client that believes what a server says of its limits: the server refuses
// the first call and says to come again in 20 ms; the program sees one call.
func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	calls := 0
	srv := &server{check: func(ctx context.Context, n int) error {
		calls = n
		if n == 1 {
			tell(ctx, "grpc-retry-pushback-ms", "20")
			return status.Error(codes.ResourceExhausted, "over the limit")
		}
		return nil
	}}
	s := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(s, srv)
	go s.Serve(l)
	defer s.Stop()

	// One for the whole program.
	limits := grpcclient.New(client.Options{}, grpcclient.Options{
		Idempotent: func(method string) bool { return method == grpc_health_v1.Health_Check_FullMethodName },
	})
	conn, err := grpc.NewClient(l.Addr().String(),
		append(limits.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	resp, err := grpc_health_v1.NewHealthClient(conn).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	var why *client.RateLimitError
	if errors.As(err, &why) {
		log.Fatalf("not sent, or not again: %s; come again in %v", why.Reason, why.RetryAfter)
	}
	fmt.Println(resp.GetStatus(), err)
	fmt.Println(calls, "attempts,", limits.Stats().Refused, "refused")
	// Output:
	// SERVING <nil>
	// 2 attempts, 1 refused
}
