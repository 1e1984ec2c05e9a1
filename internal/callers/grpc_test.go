package callers

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/comporta/comporta/client/grpcclient"
)

// attempts are what gRPC tells of each attempt, as the tap does of HTTP: when it
// began and when its answer was there. grpc-go tells of an attempt's end before it
// waits for the next.
type attempts struct {
	mu  sync.Mutex
	all []exchange
}

func (a *attempts) exchanges() []exchange {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

func (a *attempts) HandleRPC(_ context.Context, s stats.RPCStats) {
	end, ok := s.(*stats.End)
	if !ok {
		return
	}
	e := exchange{at: end.BeginTime, left: end.EndTime, ok: end.Error == nil}
	if status.Code(end.Error) == codes.ResourceExhausted {
		e.refused = true
		words := end.Trailer["grpc-retry-pushback-ms"]
		if len(words) != 1 {
			e.wrong = "it has not one grpc-retry-pushback-ms"
		} else if ms, err := strconv.Atoi(words[0]); err != nil {
			e.wrong = "its grpc-retry-pushback-ms is " + words[0]
		} else if e.never = ms == -1; !e.never {
			e.told = time.Duration(ms) * time.Millisecond
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, e)
}

func (a *attempts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (a *attempts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (a *attempts) HandleConn(context.Context, stats.ConnStats)                       {}

// as documented
// For grpc.WithDefaultServiceConfig.
const patientConfig = `{"methodConfig": [{
  "name": [{}],
  "timeout": "60s",
  "retryPolicy": {
    "maxAttempts": 5,
    "initialBackoff": "0.5s",
    "maxBackoff": "10s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]
  }
}]}`

// end

func serviceConfig(ctx context.Context, q query) outcome {
	if q.settings == "plain" {
		return overGRPC(ctx, q)
	}
	config := patientConfig
	switch {
	case q.settings == "bare":
		config = strings.Replace(config, `"timeout": "60s",`, "", 1)
	case q.path == "/hourly": // its end is not waited for a minute
		config = strings.Replace(config, "60s", "8s", 1)
	}
	return overGRPC(ctx, q, grpc.WithDefaultServiceConfig(config))
}

func oursOverGRPC(ctx context.Context, q query) outcome {
	return overGRPC(ctx, q, grpcclient.New(ourOptions(q), grpcclient.Options{}).DialOptions()...)
}

// overGRPC makes the calls of a query: Check for the bucket, List for the hourly
// limit, which stands for the slow one too. What is too dear is a method that the upstream does not have.
func overGRPC(ctx context.Context, q query, with ...grpc.DialOption) (o outcome) {
	with = append(with, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(q.attempts))
	conn, err := grpc.NewClient("passthrough:///"+q.addr, with...)
	if err != nil {
		o.err = err
		return o
	}
	defer conn.Close()
	health := healthpb.NewHealthClient(conn)
	ctx = metadata.AppendToOutgoingContext(ctx, "x-api-key", q.key)
	return q.each(func() (int, error) {
		var err error
		switch q.path {
		case "/bucket":
			_, err = health.Check(ctx, &healthpb.HealthCheckRequest{})
		case "/hourly", "/slow":
			_, err = health.List(ctx, &healthpb.HealthListRequest{})
		case "/dear":
			err = conn.Invoke(ctx, "/callers.Dear/Call", &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{})
		}
		switch status.Code(err) {
		case codes.OK:
			return 200, nil
		case codes.ResourceExhausted:
			return 429, nil
		case codes.DeadlineExceeded:
			return 504, nil
		case codes.Canceled:
			return 0, errStopped
		}
		return 0, err
	})
}
