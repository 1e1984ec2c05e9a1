package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/internal/telemetry"
	"github.com/comporta/comporta/policy"
)

// Options say what is looked at and changed, and where.
type Options struct {
	// Said is what the policy says of administration. It does not change.
	Said config.Admin
	// InForce is the policy in force, and its engine.
	InForce func() (*config.Config, *policy.Engine)
	// Changing is held while run-time overrides are set, and by whoever puts another
	// policy in force: what is set in between would be lost.
	Changing sync.Locker
	// Overridden is told when run-time overrides have changed; nil is nobody.
	Overridden func()
	// Telemetry ranks clients.
	Telemetry *telemetry.Telemetry
	// Log hears who is not let in, what was done, and what fails; nil drops it.
	Log *slog.Logger
}

// A Server is the administration. It listens from New on.
type Server struct {
	o        Options
	log      *slog.Logger
	listener net.Listener
	server   *http.Server
	door     door
	book     *book
	audit    *audit
}

// New reads the tokens, puts the run-time overrides that were kept in force, and
// listens. Its errors are sentences for whoever started the gateway.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Overridden == nil {
		o.Overridden = func() {}
	}
	if _, err := readTokens(o.Said.TokenFile); err != nil {
		return nil, err
	}
	s := &Server{o: o, log: o.Log, door: door{file: o.Said.TokenFile}}
	var err error
	for _, t := range []**tries{&s.door.tries, &s.door.told} {
		if *t, err = newTries(); err != nil {
			return nil, err
		}
	}
	if s.audit, err = newAudit(o.Said.Audit, o.Log); err != nil {
		return nil, err
	}
	if s.book, err = openBook(o); err != nil {
		return nil, err
	}
	if s.listener, s.door.names, err = listen(o.Said.Listen); err != nil {
		return nil, err
	}
	s.server = &http.Server{
		Handler:                      s.handler(),
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  10 * time.Second,
		WriteTimeout:                 30 * time.Second,
		IdleTimeout:                  time.Minute,
		MaxHeaderBytes:               16 << 10,
		DisableGeneralOptionsHandler: true, // OPTIONS * wants the token too
		ErrorLog:                     slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// Addr is where operators come in.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until the context ends, and lets what is under way end.
func (s *Server) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(s.listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("the administration stopped serving: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := s.server.Shutdown(stopping)
	<-ended
	return errors.Join(err, s.Close())
}

// Close ends all at once.
func (s *Server) Close() error {
	err := s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return errors.Join(s.server.Close(), err)
}

// Reloaded says that another policy is in force: run-time overrides are read anew
// under it.
func (s *Server) Reloaded() { s.book.reload() }

// listen listens at host:port, or at unix: and a path: a socket that only the
// gateway's own user may open. One that a process left behind is replaced.
func listen(address string) (net.Listener, hosts, error) {
	network, at := "tcp", address
	if path, unix := strings.CutPrefix(address, "unix:"); unix {
		network, at = "unix", path
		if err := removeStale(path); err != nil {
			return nil, hosts{}, err
		}
	}
	l, err := net.Listen(network, at)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, hosts{}, fmt.Errorf("cannot listen on %s for the administration: another program is there; choose another place in server.admin.listen", address)
	case err != nil:
		if op := new(net.OpError); errors.As(err, &op) {
			err = op.Err
		}
		return nil, hosts{}, fmt.Errorf("cannot listen on %s for the administration: %w", address, err)
	case network == "unix":
		if err := os.Chmod(at, 0o600); err != nil {
			l.Close()
			return nil, hosts{}, fmt.Errorf("the administration's socket cannot be closed to others: %w", err)
		}
		return l, hosts{unix: true}, nil
	}
	host, _, _ := net.SplitHostPort(address)
	addr, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil { // a listener's address is one
		l.Close()
		return nil, hosts{}, fmt.Errorf("the administration listens at no address: %w", err)
	}
	return l, hosts{said: strings.ToLower(host), addr: addr.Addr().Unmap()}, nil
}

// removeStale removes a socket at which nobody listens any more. What is no socket
// stays.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil // listening says what is in the way
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
		return fmt.Errorf("cannot listen on unix:%s for the administration: another process listens there", path)
	}
	return os.Remove(path)
}

// A failure is an answer that is none of the good ones.
type failure struct {
	status int
	detail string
}

func (f *failure) Error() string { return f.detail }

// mostBody bounds the body of a request.
const mostBody = 64 << 10

// handler lets in who may come in, and finds what is asked for.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, request *http.Request) {
			c := &call{Server: s, Request: request, by: request.Context().Value(byKey{}).(string)}
			answer, err := r.do(c)
			s.answer(w, answer, err)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		r.Body = http.MaxBytesReader(w, r.Body, mostBody)
		by, no := s.door.enter(r, now())
		if no != nil {
			if no.log != "" {
				s.log.Warn(no.log, "peer", from(r))
			}
			if no.status == http.StatusUnauthorized {
				h.Set("WWW-Authenticate", `Bearer realm="comporta"`)
			}
			if no.retry > 0 {
				h.Set("Retry-After", strconv.FormatInt(int64((no.retry+time.Second-1)/time.Second), 10))
			}
			s.answer(w, nil, no.failure)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), byKey{}, by))
		if _, pattern := mux.Handler(r); pattern == "" {
			s.answer(w, nil, &failure{http.StatusNotFound, "There is nothing at this path with this method: GET /v1/openapi.json says what there is."})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

type byKey struct{}

// A call is one request of somebody who was let in.
type call struct {
	*Server
	*http.Request
	by string
}

// from is who sends a request, for logs.
func from(r *http.Request) string {
	if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return a.Addr().Unmap().String()
	}
	return "unix"
}

// read reads a call's body, a JSON object without unknown members.
func (c *call) read(into any) error {
	d := json.NewDecoder(c.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.More() {
		err = errors.New("there is more than one JSON object")
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &failure{http.StatusRequestEntityTooLarge, fmt.Sprintf("A body has at most %d bytes.", mostBody)}
	case err != nil:
		return &failure{http.StatusBadRequest, "The body is not the JSON object that is wanted here: " + strings.TrimPrefix(err.Error(), "json: ") + "."}
	}
	return nil
}

// answer writes an answer, or what is wrong as a problem document.
func (s *Server) answer(w http.ResponseWriter, answer any, err error) {
	h, status := w.Header(), http.StatusOK
	h.Set("Content-Type", "application/json")
	var fault *failure
	if err != nil {
		if !errors.As(err, &fault) {
			fault = &failure{http.StatusServiceUnavailable, "It cannot be done at the moment: " + err.Error() + "."}
			s.log.Error("the administration fails", "error", err)
		}
		h.Set("Content-Type", "application/problem+json")
		status = fault.status
		answer = problem{http.StatusText(status), status, fault.detail}
	}
	text, ok := answer.(json.RawMessage)
	if !ok {
		text, err = json.MarshalIndent(answer, "", "  ")
		if err != nil { // texts and finite numbers: it cannot be
			status, text = http.StatusInternalServerError, nil
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // who does not take the answer has gone
}

type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}
