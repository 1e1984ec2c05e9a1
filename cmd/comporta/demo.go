package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/comporta/comporta/internal/gateway"
)

// demoLimit is what the demonstration puts in front of its API, by address.
const demoLimit = "10/min burst 5"

// A demoAPI is a small API on a free port of this machine, for the gateway to
// stand in front of.
type demoAPI struct {
	listener net.Listener
	server   *http.Server
	ended    chan struct{}
}

func startDemo() (*demoAPI, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start the demonstration's API: %w", err)
	}
	api := &demoAPI{l, &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			fmt.Fprintf(w, "The API behind the gateway was asked: %s %s\n", r.Method, r.URL.Path)
		}),
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}, make(chan struct{})}
	go func() {
		defer close(api.ended)
		_ = api.server.Serve(l) // which ends by Close alone
	}()
	return api, nil
}

// URL is where the API answers.
func (a *demoAPI) URL() string { return "http://" + a.listener.Addr().String() }

// Close ends the API.
func (a *demoAPI) Close() {
	_ = a.server.Close()
	<-a.ended
}

// tellDemo says what there is to try.
func tellDemo(w io.Writer, g *gateway.Gateway) {
	url := "http://" + reachable(g.Addr())
	fmt.Fprintf(w, `A demonstration: an API of its own behind a limit of %s by address.

  curl -i %s/hello
      200 OK; RateLimit-Limit: 5, RateLimit-Remaining: 4

  for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%%{http_code} ' %s/hello; done
      200 for what is left of the five, then 429; after that, one more every 6 s

Your own API: comporta serve --upstream http://127.0.0.1:9000 --limit 100/min
`, demoLimit, url, url)
	if m := g.MetricsAddr(); m != nil {
		fmt.Fprintf(w, "Metrics: http://%s/metrics\n", reachable(m))
	}
	fmt.Fprint(w, "Ctrl-C ends it. A line for each request follows.\n\n")
}

// reachable is an address that one can connect to: this machine's own where the
// gateway listens on all.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
