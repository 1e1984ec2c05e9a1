package httplimit_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
	"github.com/comporta/comporta/storetest"
)

// tries is a limit on failed logins, tokens one that is settled by answers.
func tries(t testing.TB, text string) *policy.Limit {
	l := perAddress(t, "tries", text, comporta.SlidingLog)
	l.Limit.Charge, l.Failure = comporta.Failures, policy.Failure{Status: []int{401}}
	return l
}

func tokens(t testing.TB, e policy.Estimate) *policy.Limit {
	l := perAddress(t, "tokens", "1000/h", comporta.FixedWindow)
	e.Default = 100
	l.Estimate = &e
	return l
}

var usage = policy.Estimate{ResponseJSON: "usage.total_tokens"}

// both runs a handler behind limits on real servers of both versions.
func both(t *testing.T, limits []*policy.Limit, handler http.Handler, test func(t *testing.T, server *httptest.Server)) {
	t.Helper()
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", version), func(t *testing.T) {
			limit, _ := enforce(t, &policy.Policy{Limits: limits}, httplimit.Options{})
			server := httptest.NewUnstartedServer(limit(handler))
			server.EnableHTTP2 = version == 2
			server.StartTLS()
			defer server.Close()
			test(t, server)
		})
	}
}

// Guesses that come at once are charged before any is answered: no more of them
// reach the login than may fail.
func TestParallelGuesses(t *testing.T) {
	const may, guesses = 5, 40
	var inside sync.WaitGroup
	inside.Add(may)
	var reached atomic.Int32
	login := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		inside.Done()
		inside.Wait() // all that are let through are in here at once
		w.WriteHeader(http.StatusUnauthorized)
	})
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{tries(t, "5/15m")}}, httplimit.Options{})
	server := httptest.NewServer(limit(login))
	defer server.Close()
	var answers [600]atomic.Int32
	var all sync.WaitGroup
	for range guesses {
		all.Go(func() {
			r, err := server.Client().Get(server.URL)
			if err != nil {
				t.Error(err)
				return
			}
			r.Body.Close()
			answers[r.StatusCode].Add(1)
		})
	}
	all.Wait()
	if reached.Load() != may || answers[401].Load() != may || answers[429].Load() != guesses-may {
		t.Errorf("%d reached the login, %d of %d were wrong", reached.Load(), answers[401].Load(), guesses)
	}
}

// Right guesses are given back before the client hears of them, whatever way the
// handler answers.
func TestRightGuessesAreGivenBack(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"nothing":   func(http.ResponseWriter, *http.Request) {},
		"status":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"write":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a")) },
		"string":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a") },
		"copy":      func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("abc")) },
		"flush":     func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"forbidden": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"hints": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusOK)
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, []*policy.Limit{tries(t, "1/15m")}, handler, func(t *testing.T, server *httptest.Server) {
				for range 20 {
					r, err := server.Client().Get(server.URL)
					if err != nil {
						t.Fatal(err)
					}
					if got := r.Header.Get("Ratelimit-Remaining"); r.StatusCode == 429 || got != "1" {
						t.Fatalf("%s, %s left", r.Status, got)
					}
					if name == "flush" {
						continue // asks again while the first answer is still on its way
					}
					_, _ = io.Copy(io.Discard, r.Body)
					r.Body.Close()
				}
			})
		})
	}
}

// A login that ends without an answer has failed.
func TestLoginsWithoutAnAnswer(t *testing.T) {
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{tries(t, "2/15m")}}, httplimit.Options{})
	h := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	recovering := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		h.ServeHTTP(w, r)
	})
	var got []string
	for range 3 {
		got = append(got, brief(ask(recovering, get("/"))))
	}
	if diff := cmp.Diff([]string{"500 1 900", "500 0 900", "429 0 900 retry 900"}, got); diff != "" {
		t.Error(diff)
	}
}

// A switch of protocols is an answer.
func TestUpgradesAreNoFailures(t *testing.T) {
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{tries(t, "1/15m")}}, httplimit.Options{})
	server := httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\n")
		_ = w.Header().Write(rw)
		fmt.Fprint(rw, "\r\n")
		rw.Flush()
	})))
	defer server.Close()
	for range 3 {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := brief(r); got != "101 1 0" {
			t.Error(got)
		}
		conn.Close()
	}
}

// Whoever asks again right after the last byte finds what it asked before settled,
// whatever way that came.
func TestAnswersAreSettledBeforeTheyEnd(t *testing.T) {
	const document = `{"text":"words","usage":{"total_tokens":7}}`
	event := "data: " + document + "\n\n"
	answers := map[string]http.HandlerFunc{
		"at once": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, document)
		},
		"of a known length, in pieces": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(document)))
			for i := range len(document) {
				_, _ = io.WriteString(w, document[i:i+1])
				w.(http.Flusher).Flush()
			}
		},
		"copied": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader(document)})
		},
		"lines of a known length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.Header().Set("Content-Length", strconv.Itoa(len(document)+4))
			_, _ = io.WriteString(w, document+"\n{}\n")
		},
	}
	for name, end := range map[string]string{"events": "data: [DONE]\n\n", "events without an end": ""} {
		answers[name] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, event)
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, end)
			w.(http.Flusher).Flush()
		}
	}
	for name, handler := range answers {
		t.Run(name, func(t *testing.T) {
			both(t, []*policy.Limit{tokens(t, usage)}, handler, func(t *testing.T, server *httptest.Server) {
				for i := range 20 {
					r, err := server.Client().Get(server.URL)
					if err != nil {
						t.Fatal(err)
					}
					if got, want := r.Header.Get("Ratelimit-Remaining"), strconv.Itoa(1000-7*i-100); got != want && name != "at once" {
						t.Errorf("request %d: %s left, want %s", i+1, got, want)
					}
					body, err := io.ReadAll(r.Body)
					if err != nil || !strings.Contains(string(body), document) {
						t.Fatalf("%s, %v", body, err)
					}
					r.Body.Close()
				}
			})
		})
	}
}

// Events come when they are flushed, though they are read, and where the last of
// them says that it is the last, the cost is settled before the client has it.
func TestEventsAreNotHeldBack(t *testing.T) {
	next := make(chan struct{})
	both(t, []*policy.Limit{tokens(t, usage)}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{"{}", `{"usage":{"total_tokens":7}}`, "[DONE]"} {
			fmt.Fprintf(w, "data: %s\n\n", event)
			err := http.NewResponseController(w).Flush()
			if r.URL.Path == "/" {
				if err != nil {
					t.Error(err)
				}
				<-next
			}
		}
	}), func(t *testing.T, server *httptest.Server) {
		r, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		lines := bufio.NewScanner(r.Body)
		for _, want := range []string{"data: {}", `data: {"usage":{"total_tokens":7}}`, "data: [DONE]"} {
			if lines.Scan(); lines.Text() != want {
				t.Fatalf("%q, want %q", lines.Text(), want)
			}
			lines.Scan()
			if want == "data: [DONE]" {
				again, err := server.Client().Get(server.URL + "/again")
				if err != nil {
					t.Fatal(err)
				}
				if got := again.Header.Get("Ratelimit-Remaining"); got != "893" {
					t.Errorf("while the first answer is open: %s left, want 893", got)
				}
				again.Body.Close()
			}
			next <- struct{}{}
		}
	})
}

// Once the client has all of a body whose end it knows, the cost is settled, though
// the handler has not returned.
func TestBodiesWhoseEndIsKnown(t *testing.T) {
	const document = `{"usage":{"total_tokens":7}}` + "\n"
	for name, header := range map[string]http.Header{
		"by its length":    {"Content-Type": {"application/x-ndjson"}, "Content-Length": {strconv.Itoa(len(document))}},
		"by its last byte": {"Content-Type": {"application/json"}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{})
			both(t, []*policy.Limit{tokens(t, usage)}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					return
				}
				for name, lines := range header {
					w.Header()[name] = lines
				}
				for i := range len(document) {
					_, _ = io.WriteString(w, document[i:i+1])
				}
				w.(http.Flusher).Flush()
				<-asked
			}), func(t *testing.T, server *httptest.Server) {
				r, err := server.Client().Get(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Body.Close()
				if _, err := io.ReadFull(r.Body, make([]byte, len(document))); err != nil {
					t.Fatal(err)
				}
				transport := server.Client().Transport.(*http.Transport).Clone()
				defer transport.CloseIdleConnections()
				other := &http.Client{Transport: transport} // the first connection waits for the handler
				again, err := other.Get(server.URL + "/again")
				if err != nil {
					t.Fatal(err)
				}
				again.Body.Close()
				if got := again.Header.Get("Ratelimit-Remaining"); got != "893" {
					t.Errorf("%s left, want 893", got)
				}
				asked <- struct{}{}
			})
		})
	}
}

// What was all used up until it was given back bars nobody from asking again as soon
// as the handler says.
func TestWhatIsGivenBackBarsNobody(t *testing.T) {
	l := tokens(t, policy.Estimate{ResponseHeader: "X-Cost"})
	l.Estimate.Default = 1000
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{l}}, httplimit.Options{})
	h := limit(upstream(http.StatusServiceUnavailable, "X-Cost: 0", "Retry-After: 1"))
	if r := ask(h, get("/")); r.Header.Get("Retry-After") != "1" || r.Header.Get("Ratelimit-Remaining") != "1000" {
		t.Errorf("%v", r.Header)
	}
}

// Requests whose answers are read ask for them uncompressed; others as they came.
func TestAnswersThatAreReadComeUncompressed(t *testing.T) {
	read := tokens(t, usage)
	read.Match = patterns(t, "/read")
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{read, tries(t, "9/h")}}, httplimit.Options{})
	var sent []string
	h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header["Accept-Encoding"] }))
	for path, want := range map[string][]string{"/read": nil, "/": {"gzip"}} {
		r := get(path, with("Accept-Encoding", "gzip"))
		ask(h, r)
		if diff := cmp.Diff(want, sent); diff != "" || r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("%s: %s; the request that came in has %v", path, diff, r.Header)
		}
	}
}

// What cannot be settled is told of once, with the answer all the same.
func TestUnsettled(t *testing.T) {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	faults := &storetest.Faults{Store: store, Script: storetest.Sequence(storetest.None, storetest.LostReply)}
	engine, err := policy.NewEngine(&policy.Policy{Limits: []*policy.Limit{tries(t, "2/15m")}}, faults, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var told []error
	h := httplimit.New(engine, httplimit.Options{Unsettled: func(err error, r *http.Request) { told = append(told, err) }})(ok)
	if r := ask(h, get("/")); r.StatusCode != 200 || r.Header.Get("Ratelimit-Remaining") != "1" {
		t.Errorf("%s %v", r.Status, r.Header)
	}
	if len(told) != 1 || !errors.Is(told[0], storetest.ErrFault) {
		t.Errorf("told of %v", told)
	}
}
