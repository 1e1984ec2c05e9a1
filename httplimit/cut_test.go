package httplimit_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/policy"
)

// A cut answer keeps the estimate, or what was counted until then if that is more.
func TestCutAnswers(t *testing.T) {
	for counted, want := range map[int]string{7: "800", 300: "600"} {
		cut := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"usage\":{\"total_tokens\":%d}}\n\n", counted)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		both(t, []*policy.Limit{tokens(t, usage)}, cut, func(t *testing.T, server *httptest.Server) {
			r, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(r.Body); err == nil {
				t.Error("the answer was not cut")
			}
			r.Body.Close()
			after, err := server.Client().Get(server.URL + "/after")
			if err != nil {
				t.Fatal(err)
			}
			after.Body.Close()
			if got := after.Header.Get("Ratelimit-Remaining"); got != want {
				t.Errorf("%d were counted: %s left, want %s", counted, got, want)
			}
		})
	}
	// One that is shorter than it was to be is cut too, though its handler returned.
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{tokens(t, usage)}}, httplimit.Options{})
	h := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "{\"usage\":{\"total_tokens\":7}}\n")
	}))
	ask(h, get("/"))
	if got := ask(h, get("/")).Header.Get("Ratelimit-Remaining"); got != "800" {
		t.Errorf("%s left, want 800", got)
	}
}

// A client that is gone has not had all of its answer, though the handler returned.
func TestAnswersThatDoNotArrive(t *testing.T) {
	events := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"usage\":{\"total_tokens\":7}}\n\n")
		if hangUp, ok := r.Context().Value(hangUpKey{}).(context.CancelFunc); ok {
			hangUp()
		}
	})
	for name, serve := range map[string]func(h http.Handler){
		"gone": func(h http.Handler) { h.ServeHTTP(deaf{httptest.NewRecorder()}, get("/")) },
		"given up": func(h http.Handler) {
			ctx, hangUp := context.WithCancel(t.Context())
			ask(h, get("/").WithContext(context.WithValue(ctx, hangUpKey{}, hangUp)))
		},
	} {
		limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{tokens(t, usage)}}, httplimit.Options{})
		h := limit(events)
		serve(h)
		if got := ask(h, get("/")).Header.Get("Ratelimit-Remaining"); got != "800" {
			t.Errorf("%s: %s left, want 800", name, got)
		}
	}
}

type hangUpKey struct{}

// deaf is a client that is gone.
type deaf struct{ http.ResponseWriter }

func (deaf) Write([]byte) (int, error) { return 0, net.ErrClosed }
