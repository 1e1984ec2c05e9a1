package redistest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A Server is a running Redis or Valkey. Its methods fail the test where they
// cannot do what they say. Do is safe for concurrent use.
type Server struct {
	Addr   string // host:port
	Host   string
	Port   int
	Prefix string // for the keys of this test; no other test has it

	// Password is what Do says first, unless "": for a test that sets one.
	Password string

	t       testing.TB
	path    string // "" where the server is not ours
	args    []string
	dir     string
	process *process
	up      atomic.Bool // it runs and is not paused
}

// Start starts a server, with more arguments as on its command line, or takes
// the one at COMPORTA_TEST_REDIS where there are none; of that one, only keys
// that begin with Prefix are removed at the end.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	if external := os.Getenv("COMPORTA_TEST_REDIS"); external != "" && len(args) == 0 {
		return borrow(t, external)
	}
	return StartOwn(t, args...)
}

// StartOwn starts a server that is the test's alone: to be paused or ended, or for
// keys without Prefix.
func StartOwn(t testing.TB, args ...string) *Server {
	t.Helper()
	return begin(t, func(port int) []string {
		return slices.Concat([]string{
			"--port", strconv.Itoa(port), "--bind", loopback, "--save", "", "--appendonly", "no",
			"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
		}, args)
	})
}

// begin starts a server on a free port, with these arguments for it.
func begin(t testing.TB, args func(port int) []string) *Server {
	t.Helper()
	s := &Server{Host: loopback, Prefix: prefix(), t: t, path: program(t), dir: t.TempDir()}
	t.Cleanup(func() {
		if s.process != nil {
			s.process.kill()
		}
	})
	var err error
	for range 5 {
		s.Port = freePort(t)
		s.Addr = net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
		s.args = append(args(s.Port), "--dir", s.dir)
		if err = s.live(); err == nil {
			return s
		}
	}
	t.Fatalf("redistest: %v", err)
	return nil
}

// live starts the process and waits until it answers.
func (s *Server) live() error {
	name := filepath.Join(s.dir, "log")
	log, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if s.process, err = run(log, s.path, s.args...); err != nil {
		s.process = nil
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	err = poll(ctx, func() error {
		select {
		case <-s.process.ended:
			return fmt.Errorf("%w:\n%s", errEnded, tail(name))
		default:
			return s.answers()
		}
	})
	if err != nil {
		s.process.kill()
	}
	s.up.Store(err == nil)
	return err
}

// answers says whether it is this process that listens.
func (s *Server) answers() error {
	info, err := s.Do("INFO", "server")
	if e := Error(""); errors.As(err, &e) {
		return nil // it wants a password, or loads its data
	}
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("process_id:%d\r\n", s.process.Pid); !strings.Contains(info.(string), want) {
		return fmt.Errorf("another server listens on %s", s.Addr)
	}
	return nil
}

// borrow takes a server that is not ours.
func borrow(t testing.TB, external string) *Server {
	t.Helper()
	u, err := url.Parse(external)
	if err != nil || u.Scheme != "redis" || u.Port() == "" {
		t.Fatal("redistest: COMPORTA_TEST_REDIS must read redis://host:port")
	}
	port, _ := strconv.Atoi(u.Port()) // url.Parse took digits only
	s := &Server{Addr: u.Host, Host: u.Hostname(), Port: port, Prefix: prefix(), t: t}
	t.Cleanup(s.sweep)
	return s
}

// sweep removes the keys of this test.
func (s *Server) sweep() {
	cursor := "0"
	for {
		reply, err := s.Do("SCAN", cursor, "MATCH", s.Prefix+"*", "COUNT", "1000")
		if err != nil {
			s.t.Errorf("redistest: removing keys: %v", err)
			return
		}
		page := reply.([]any)
		for _, key := range page[1].([]any) {
			if _, err := s.Do("DEL", key.(string)); err != nil {
				s.t.Errorf("redistest: removing keys: %v", err)
			}
		}
		if cursor = page[0].(string); cursor == "0" {
			return
		}
	}
}

// URL is its address as a policy writes it.
func (s *Server) URL() string { return "redis://" + s.Addr }

// PID is its process.
func (s *Server) PID() int { s.t.Helper(); s.own(); return s.process.Pid }

// Pause stops it where it is: it answers nothing and its connections stay.
func (s *Server) Pause() { s.t.Helper(); s.signal(syscall.SIGSTOP); s.up.Store(false) }

// Resume lets it go on.
func (s *Server) Resume() { s.t.Helper(); s.signal(syscall.SIGCONT); s.up.Store(true) }

// Kill ends it as a crash does and waits until it is gone.
func (s *Server) Kill() {
	s.t.Helper()
	s.own()
	s.up.Store(false)
	s.process.kill()
}

// Restart kills it if it runs and starts it again on the same port: empty,
// unless its arguments ask for persistence.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.live(); err != nil {
		s.t.Fatalf("redistest: starting again: %v", err)
	}
}

// Do sends one command over a connection of its own and gives its reply: nil,
// int64, string or []any of these; an error reply is an [Error]. It gives up
// after five seconds.
func (s *Server) Do(args ...string) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := dial(ctx, s.Addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if s.Password != "" {
		if _, err := c.do("AUTH", s.Password); err != nil {
			return nil, err
		}
	}
	reply, err := c.do(args...)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", args[0], s.Addr, err)
	}
	if e, ok := reply.(Error); ok {
		return nil, e
	}
	return reply, nil
}

// MustDo is Do for a command that cannot fail.
func (s *Server) MustDo(args ...string) any {
	s.t.Helper()
	reply, err := s.Do(args...)
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	return reply
}

func (s *Server) signal(sig syscall.Signal) {
	s.own()
	s.t.Helper()
	if err := s.process.Signal(sig); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
}

// own skips a test that would do to somebody else's server what one may only do
// to one's own.
func (s *Server) own() {
	s.t.Helper()
	if s.path == "" {
		s.t.Skip("this test pauses or ends its server: not with COMPORTA_TEST_REDIS")
	}
}

// Until waits until check finds nothing wrong; after the bound, it fails the
// test with what was wrong last.
func Until(t testing.TB, bound time.Duration, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := poll(ctx, check); err != nil {
		t.Fatalf("not within %v: %v", bound, err)
	}
}

var errEnded = errors.New("the server ended")

// poll asks every few milliseconds until there is no error, ctx ends, or the
// server has ended.
func poll(ctx context.Context, check func() error) error {
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for {
		err := check()
		if err == nil || errors.Is(err, errEnded) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-every.C:
		}
	}
}

// prefix is one that no other test has.
func prefix() string { return "t" + strings.ToLower(rand.Text()[:12]) }

// tail is the end of a log.
func tail(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-1000):])
}
