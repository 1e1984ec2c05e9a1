package gateway

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// admin answers at the metrics address; nothing there changes anything.
type admin struct {
	listener net.Listener
	server   *http.Server
}

func newAdmin(g *Gateway) (*admin, error) {
	l, err := listen(g.o.Server.Metrics, "--metrics")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "alive\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if g.draining.Load() {
			say(w, http.StatusServiceUnavailable, "draining\n")
			return
		}
		say(w, http.StatusOK, "ready\n")
	})
	mux.Handle("GET /metrics", g.o.Telemetry.Handler())
	return &admin{l, &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}}, nil
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

func (a *admin) serve() error { return a.server.Serve(a.listener) }

func (a *admin) close() error {
	_ = a.listener.Close() // also when serve has not begun
	return a.server.Close()
}
