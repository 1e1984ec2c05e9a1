package gateway

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
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
		status, text := g.ready()
		say(w, status, text)
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

// ready is the answer of /readyz. A gateway whose store is down serves on as its
// policy says: were it not ready, all that share the store would leave their
// balancer at once, with the requests that no limit is in the way of.
func (g *Gateway) ready() (status int, text string) {
	if g.draining.Load() {
		return http.StatusServiceUnavailable, "draining\n"
	}
	text = "ready\n"
	if g.o.Shared != nil {
		s := g.o.Shared()
		if s.Up {
			text += fmt.Sprintf("store: up, instances %d\n", s.Instances)
		} else {
			text += fmt.Sprintf("store: down since %s, on_error %v, cause %s\n",
				s.Since.UTC().Format(time.RFC3339), g.reign.Load().Engine.OnError(), s.Cause)
		}
	}
	if g.o.Failing != nil {
		if failing := g.o.Failing(); len(failing) > 0 {
			text += fmt.Sprintf("credentials: %s cannot be asked for; the log says why\n", strings.Join(failing, ", "))
		}
	}
	return http.StatusOK, text + g.configLines()
}

// configLines say which files are not in force as they are, and which words of the
// policy in force are not.
func (g *Gateway) configLines() (text string) {
	g.troubled.Lock()
	defer g.troubled.Unlock()
	if len(g.troubles) > 0 {
		var why []string
		for _, file := range slices.Sorted(maps.Keys(g.troubles)) {
			why = append(why, g.troubles[file])
		}
		text = fmt.Sprintf("config: %s; %s stays in force\n", strings.Join(why, "; "), cmp.Or(g.reign.Load().Hash, "what was before"))
	}
	if len(g.waiting) > 0 {
		text += fmt.Sprintf("restart to apply: %s\n", strings.Join(g.waiting, ", "))
	}
	return text
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
