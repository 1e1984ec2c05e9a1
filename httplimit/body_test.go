package httplimit_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// A reader is a source that reads so much of a body, twice, and tells what it saw.
type reader struct {
	most int
	mu   sync.Mutex
	seen []string
}

func (s *reader) Identity(*identity.Request) (string, bool) { return "", false }
func (s *reader) Stage(*identity.Request) identity.Stage    { return identity.Body }
func (s *reader) String() string                            { return "reader" }

func (s *reader) Prove(ctx context.Context, r *identity.Request) (identity.Who, bool, error) {
	saw := func(text string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen = append(s.seen, text)
	}
	if r.Body == nil {
		saw("nothing")
		return identity.Who{}, false, nil
	}
	for _, most := range []int{s.most / 2, s.most} {
		data, whole, err := r.Body(ctx, most)
		if err != nil {
			saw(err.Error())
			return identity.Who{}, false, err
		}
		saw(fmt.Sprintf("%.8s(%d) %v", data, len(data), whole))
	}
	return identity.Who{ID: "reader:all"}, true, nil
}

// last is what it saw last.
func (s *reader) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[len(s.seen)-1]
}

func (s *reader) policy(t testing.TB) *policy.Policy {
	return &policy.Policy{Limits: []*policy.Limit{{Name: "a", Per: s, Limit: limitOf(t, "1000/min", comporta.TokenBucket)}}}
}

// What limits read of a body is handed on as it came.
func TestBodiesAreHandedOn(t *testing.T) {
	for _, version := range []int{1, 2} {
		for _, chunked := range []bool{false, true} {
			for _, c := range []struct {
				size int
				saw  string
			}{{0, "nothing"}, {1, "x(1) true"}, {99, "xxxxxxxx(99) true"}, {100, "xxxxxxxx(100) true"}, {101, "xxxxxxxx(100) false"}, {1 << 20, "xxxxxxxx(100) false"}} {
				source := &reader{most: 100}
				limit, _ := enforce(t, source.policy(t), httplimit.Options{})
				server := httptest.NewUnstartedServer(limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					n, err := io.Copy(io.Discard, r.Body)
					fmt.Fprintf(w, "%d of %d, %v", n, r.ContentLength, err)
				})))
				server.EnableHTTP2 = version == 2
				server.StartTLS()
				body := io.Reader(strings.NewReader(strings.Repeat("x", c.size)))
				length := c.size
				if chunked && c.size > 0 {
					body, length = struct{ io.Reader }{body}, -1
				}
				r, err := server.Client().Post(server.URL, "text/plain", body)
				if err != nil {
					t.Fatal(err)
				}
				got, _ := io.ReadAll(r.Body)
				if want := fmt.Sprintf("%d of %d, <nil>", c.size, length); string(got) != want {
					t.Errorf("HTTP/%d: the handler read %s, want %s", version, got, want)
				}
				if source.last() != c.saw {
					t.Errorf("HTTP/%d: limits saw %s, want %s", version, source.last(), c.saw)
				}
				server.Close()
			}
		}
	}
}

// A body is asked for only where a limit wants to know of it, and whoever waits to
// be asked is.
func TestBodiesThatWaitToBeAskedFor(t *testing.T) {
	source := &reader{most: 100}
	p := source.policy(t)
	p.Limits[0].Match = patterns(t, "/read")
	limit, _ := enforce(t, p, httplimit.Options{})
	server := httptest.NewServer(limit(ok))
	defer server.Close()
	for path, want := range map[string]string{"/read": "HTTP/1.1 100 Continue\r\n", "/": "HTTP/1.1 200 OK\r\n"} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", path)
		r := bufio.NewReader(conn)
		line, _ := r.ReadString('\n')
		if line != want {
			t.Errorf("%s: %q, want %q", path, line, want)
		}
		if path == "/read" {
			fmt.Fprint(conn, "hello")
			_, _ = r.ReadString('\n')
			if answer, err := http.ReadResponse(r, nil); err != nil || answer.StatusCode != 200 || source.last() != "hello(5) true" {
				t.Errorf("%v, %v; limits saw %s", answer, err, source.last())
			}
		}
		conn.Close()
	}
}

// A client that stops midway is refused, and one that is too slow does not hold on.
func TestBodiesThatDoNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &reader{most: 100}
		limit, _ := enforce(t, source.policy(t), httplimit.Options{})
		pipes := make(listener)
		server := &http.Server{Handler: limit(ok)}
		go func() { _ = server.Serve(pipes) }()
		defer server.Close()
		for _, c := range []struct {
			name  string
			send  func(conn net.Conn)
			want  int
			after time.Duration
		}{
			{"silence", func(net.Conn) {}, 408, 10 * time.Second},
			{"a byte a second", func(conn net.Conn) {
				for range 60 {
					time.Sleep(time.Second)
					if _, err := conn.Write([]byte("x")); err != nil {
						return
					}
				}
			}, 408, 10 * time.Second},
			{"a byte each 90 ms", func(conn net.Conn) {
				for range 100 {
					time.Sleep(90 * time.Millisecond)
					_, _ = conn.Write([]byte("x"))
				}
			}, 200, 9 * time.Second},
		} {
			client, conn := net.Pipe()
			pipes <- conn
			start := time.Now()
			_, _ = io.WriteString(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n")
			go c.send(client)
			r, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatal(c.name, err)
			}
			if took := time.Since(start); r.StatusCode != c.want || took != c.after || r.Close != (c.want == 408) {
				t.Errorf("%s: %s after %v, closed %v", c.name, r.Status, took, r.Close)
			}
			client.Close()
			synctest.Wait()
		}
	})
	source := &reader{most: 100}
	limit, _ := enforce(t, source.policy(t), httplimit.Options{})
	server := httptest.NewServer(limit(ok))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")
	_ = conn.(*net.TCPConn).CloseWrite()
	if r, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || r.StatusCode != 400 {
		t.Errorf("half a body: %v, %v", r, err)
	}
}

// A body over a bound that stands before the limits is refused as such.
func TestBodiesOverABound(t *testing.T) {
	source := &reader{most: 100}
	limit, _ := enforce(t, source.policy(t), httplimit.Options{})
	bounded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 50)
		limit(ok).ServeHTTP(w, r)
	})
	if r := ask(bounded, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 60)))); r.StatusCode != 413 {
		t.Error(r.Status)
	}
}

// A body that was read for limits and then waits for its turn is still whole.
func TestReadBodiesOutlastTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &reader{most: 100}
		p := source.policy(t)
		p.Limits[0].Limit = limitOf(t, "1/s burst 4", comporta.LeakyBucket)
		limit, _ := enforce(t, p, httplimit.Options{})
		var got int
		h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			got = len(text)
		}))
		for range 2 {
			got = 0
			ask(h, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 100_000))))
			if got != 100_000 {
				t.Errorf("%d bytes came", got)
			}
		}
	})
}

// A listener hands out connections that it is given.
type listener chan net.Conn

func (l listener) Accept() (net.Conn, error) {
	conn, open := <-l
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l listener) Close() error   { close(l); return nil }
func (l listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)} }
