package grpcclient_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/client/grpcclient"
)

// A server answers as a test says; n is the number of the call, from 1. It is of
// the health service, with a method for each of the other two kinds of streams.
type server struct {
	health.UnimplementedHealthServer
	check func(ctx context.Context, n int) error
	watch func(s grpc.ServerStreamingServer[health.HealthCheckResponse], n int) error
	// either is for streams on which the client sends.
	either func(s grpc.ServerStream, n int) error

	mu       sync.Mutex
	start    time.Time
	arrivals []time.Duration // since the start
	services []string        // that were asked for
	before   []string        // grpc-previous-rpc-attempts
}

func (s *server) arrived(ctx context.Context, service string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	s.arrivals = append(s.arrivals, time.Since(s.start))
	s.services = append(s.services, service)
	s.before = append(s.before, slices.Concat(md.Get("grpc-previous-rpc-attempts"), []string{"-"})[0])
	return len(s.arrivals)
}

// seen are the times of all calls so far.
func (s *server) seen() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.arrivals)
}

func (s *server) Check(ctx context.Context, r *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	if err := s.check(ctx, s.arrived(ctx, r.Service)); err != nil {
		return nil, err
	}
	return &health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}, nil
}

func (s *server) Watch(r *health.HealthCheckRequest, stream grpc.ServerStreamingServer[health.HealthCheckResponse]) error {
	return s.watch(stream, s.arrived(stream.Context(), r.Service))
}

func both(srv any, stream grpc.ServerStream) error {
	s := srv.(*server)
	return s.either(stream, s.arrived(stream.Context(), ""))
}

var streams = grpc.ServiceDesc{
	ServiceName: "test.Streams", HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{
		{StreamName: "Both", Handler: both, ClientStreams: true, ServerStreams: true},
		{StreamName: "Upload", Handler: both, ClientStreams: true},
	},
}

// A dialled is a client's side.
type dialled struct {
	health.HealthClient
	conn   *grpc.ClientConn
	limits *grpcclient.Interceptor
}

// both opens a stream on which the client sends; number is 0 for Both, 1 for Upload.
func (d *dialled) stream(ctx context.Context, number int) (grpc.ClientStream, error) {
	desc := &streams.Streams[number]
	return d.conn.NewStream(ctx, desc, "/test.Streams/"+desc.StreamName)
}

// bubble runs f in a bubble, with a server and a connection to it. Nothing of them
// may be left when f is done, or the bubble bursts.
func bubble(t *testing.T, srv *server, o client.Options, calls grpcclient.Options, f func(t *testing.T, d *dialled)) {
	t.Helper()
	bubbleWith(t, srv, o, calls, nil, f)
}

// bubbleWith has dial options beside, that come first.
func bubbleWith(t *testing.T, srv *server, o client.Options, calls grpcclient.Options, dialOptions []grpc.DialOption, f func(t *testing.T, d *dialled)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv.start = time.Now()
		s := grpc.NewServer()
		health.RegisterHealthServer(s, srv)
		s.RegisterService(&streams, srv)
		l := bufconn.Listen(1 << 16)
		go s.Serve(l)
		d := dial(t, l, o, calls, dialOptions...)
		f(t, d)
		d.conn.Close()
		s.Stop()
	})
}

// dial connects to what listens on l.
func dial(t testing.TB, l *bufconn.Listener, o client.Options, calls grpcclient.Options, dialOptions ...grpc.DialOption) *dialled {
	t.Helper()
	limits := grpcclient.New(o, calls)
	conn, err := grpc.NewClient("passthrough:///server", append(append(dialOptions, limits.DialOptions()...),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
	)...)
	if err != nil {
		t.Fatal(err)
	}
	return &dialled{health.NewHealthClient(conn), conn, limits}
}

// exact options leave nothing to chance.
func exact() client.Options {
	return client.Options{Backoff: client.Backoff{Jitter: client.NoJitter}}
}

func every(string) bool { return true }

// ask makes one call, with a request that names a service.
func (d *dialled) ask(ctx context.Context, service string) error {
	_, err := d.Check(ctx, &health.HealthCheckRequest{Service: service})
	return err
}

// A trailer in which keys and values take turns.
func tell(ctx context.Context, pairs ...string) {
	if err := grpc.SetTrailer(ctx, metadata.Pairs(pairs...)); err != nil {
		panic(err)
	}
}

var empty = &emptypb.Empty{}
