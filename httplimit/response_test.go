package httplimit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/policy"
)

// served runs a handler behind a limit on real servers, HTTP/1.1 and HTTP/2.
func served(t *testing.T, text string, handler http.Handler, test func(t *testing.T, server *httptest.Server)) {
	t.Helper()
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", version), func(t *testing.T) {
			limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", text, comporta.TokenBucket)}}, httplimit.Options{})
			server := httptest.NewUnstartedServer(limit(handler))
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // of superfluous headers
			if version == 2 {
				server.EnableHTTP2 = true
				server.StartTLS()
			} else {
				server.Start()
			}
			t.Cleanup(server.Close)
			test(t, server)
		})
	}
}

// Whatever way a handler answers, the fields are there, once.
func TestEveryWayOfAnswering(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"nothing":     func(http.ResponseWriter, *http.Request) {},
		"status":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"write":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a")) },
		"writestring": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a") },
		"flush":       func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"controller":  func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
		"copy": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, io.LimitReader(strings.NewReader("abc"), 2))
		},
		"error":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) },
		"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/else", http.StatusFound) },
		"twice": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			w.WriteHeader(500)
			_, _ = w.Write([]byte("a"))
		},
		"deadline": func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
				http.Error(w, err.Error(), 500)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			served(t, "3/min", handler, func(t *testing.T, server *httptest.Server) {
				client := server.Client()
				client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				r, err := client.Get(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Body.Close()
				if r.StatusCode == 500 {
					body, _ := io.ReadAll(r.Body)
					t.Fatalf("%s", body)
				}
				for name, want := range map[string]string{"Ratelimit-Limit": "3", "Ratelimit-Remaining": "2", "Ratelimit-Reset": "40"} {
					if diff := cmp.Diff([]string{want}, r.Header[name]); diff != "" {
						t.Errorf("%s (-want +got):\n%s", name, diff)
					}
				}
			})
		})
	}
}

// Informational answers come before, and without the fields.
func TestInformationalAnswers(t *testing.T) {
	hints := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusOK)
	})
	served(t, "3/min", hints, func(t *testing.T, server *httptest.Server) {
		var early []textproto.MIMEHeader
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			early = append(early, h)
			return nil
		}})
		r, err := server.Client().Do(must(http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if len(early) != 1 || early[0].Get("Link") == "" || early[0].Get("Ratelimit-Limit") != "" {
			t.Errorf("early hints: %v", early)
		}
		if r.Header.Get("Ratelimit-Limit") != "3" {
			t.Errorf("the answer: %v", r.Header)
		}
	})
}

// A panic is the server's to handle, or that of who recovers further out: such
// an answer has the fields too.
func TestPanicsPassThrough(t *testing.T) {
	boom := errors.New("boom")
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "3/min", comporta.TokenBucket)}}, httplimit.Options{})
	h := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(boom) }))
	recovering := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() == boom {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		h.ServeHTTP(w, r)
	})
	if got := brief(ask(recovering, get("/"))); got != "500 2 40" {
		t.Error(got)
	}
}

// Who takes the connection over to switch protocols finds the fields.
func TestHijack(t *testing.T) {
	upgrade := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotImplemented)
			return
		}
		defer conn.Close()
		w.Header().Set("Upgrade", "echo")
		w.Header().Set("Connection", "Upgrade")
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\n")
		_ = w.Header().Write(rw)
		fmt.Fprint(rw, "\r\n")
		rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(conn, line)
	})
	served(t, "3/min", upgrade, func(t *testing.T, server *httptest.Server) {
		if server.TLS != nil { // HTTP/2 has no connection to take over
			r, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			if got := brief(r); got != "501 2 40" {
				t.Error(got)
			}
			return
		}
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello\n")
		r := bufio.NewReader(conn)
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := brief(answer); got != "101 2 40" {
			t.Error(got)
		}
		if line, _ := r.ReadString('\n'); line != "hello\n" {
			t.Errorf("after the upgrade: %q", line)
		}
	})
}

// A refused request's small body is read away by the server and the connection
// used again; of a large one not more is read than that.
func TestRefusedBodies(t *testing.T) {
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "0/s", comporta.FixedWindow)}}, httplimit.Options{})
	server := httptest.NewServer(limit(ok))
	defer server.Close()
	post := func(body io.Reader) (status int, reused bool) {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
		r, err := server.Client().Do(must(http.NewRequestWithContext(ctx, http.MethodPost, server.URL, body)))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		_, _ = io.Copy(io.Discard, r.Body)
		return r.StatusCode, reused
	}
	for i := range 3 {
		status, reused := post(strings.NewReader(strings.Repeat("x", 100_000)))
		if status != 429 || reused != (i > 0) {
			t.Errorf("request %d: %d, on a used connection %v", i, status, reused)
		}
	}

	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\nbegun", int64(1)<<40)
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != 429 || !r.Close {
		t.Errorf("a body without end: %s, connection closed %v", r.Status, r.Close)
	}
}

// A gRPC client over HTTP/2 sees trailers-only: one header block, no body.
func TestRefusedGRPC(t *testing.T) {
	served(t, "0/s", ok, func(t *testing.T, server *httptest.Server) {
		r, err := server.Client().Post(server.URL+"/svc/Call", "application/grpc", strings.NewReader("\x00\x00\x00\x00\x00"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) > 0 || len(r.Trailer) > 0 {
			t.Errorf("body %q, trailers %v, error %v", body, r.Trailer, err)
		}
		if r.StatusCode != 200 || r.Header.Get("Grpc-Status") != "8" || r.Header.Get("Retry-After") != "" {
			t.Errorf("%s %v", r.Status, r.Header)
		}
	})
}

func must(r *http.Request, err error) *http.Request {
	if err != nil {
		panic(err)
	}
	return r
}

// A client that hangs up ends the wait, and the handler does not run: also
// behind a body, which net/http would not look past by itself.
func TestHangingUpEndsTheWait(t *testing.T) {
	for _, body := range []string{"", "hello"} {
		hangUpDuringTheWait(t, body)
	}
}

func hangUpDuringTheWait(t *testing.T, body string) {
	l := perAddress(t, "a", "1/h", comporta.TokenBucket)
	l.Limit.MaxWait = 2 * time.Hour
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{l}}, httplimit.Options{})
	ran := 0
	h := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran++ }))
	arrived, left := make(chan struct{}, 2), make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		h.ServeHTTP(w, r)
		left <- struct{}{}
	}))
	defer server.Close()
	if r, err := server.Client().Get(server.URL); err != nil || r.StatusCode != 200 {
		t.Fatal(r, err)
	}
	<-arrived
	<-left
	ctx, hangUp := context.WithCancel(t.Context())
	go func() {
		<-arrived
		hangUp()
	}()
	if r, err := server.Client().Do(must(http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(body)))); err == nil {
		t.Error("answered:", r.Status)
	}
	<-left
	if ran != 1 {
		t.Errorf("the handler ran %d times, want once", ran)
	}
}
