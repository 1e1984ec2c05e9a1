package callers

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

// arrivals are when the upstream was reached, by API key.
type arrivals struct {
	mu  sync.Mutex
	all map[string][]time.Time
}

func (a *arrivals) add(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[string][]time.Time{}
	}
	a.all[key] = append(a.all[key], time.Now())
}

// of are an id's.
func (a *arrivals) of(id string) []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[secret(id)]
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// startAPI is an upstream that counts.
func startAPI(t *testing.T) (addr string, seen *arrivals) {
	t.Helper()
	seen = new(arrivals)
	l := listen(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.add(r.Header.Get("X-API-Key"))
		fmt.Fprintln(w, "hello")
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return l.Addr().String(), seen
}

// startHealth is one that speaks gRPC: the health service.
func startHealth(t *testing.T) (addr string, seen *arrivals) {
	t.Helper()
	seen = new(arrivals)
	l := listen(t)
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		for _, key := range metadata.ValueFromIncomingContext(ctx, "x-api-key") {
			seen.add(key)
		}
		return next(ctx, req)
	}))
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return l.Addr().String(), seen
}
