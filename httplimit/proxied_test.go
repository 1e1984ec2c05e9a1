package httplimit_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/policy"
)

// behind runs a reverse proxy behind a limit on tokens, with refund, and the
// upstream behind that. Asking what is left costs nothing.
func behind(t *testing.T, upstream http.HandlerFunc) (proxy *httptest.Server, left func() string) {
	t.Helper()
	up := httptest.NewServer(upstream)
	t.Cleanup(up.Close)
	up.Config.ErrorLog = log.New(io.Discard, "", 0)
	to, err := url.Parse(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	e := usage
	e.Refund = true
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{tokens(t, e)}}, httplimit.Options{})
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.ErrorLog = log.New(io.Discard, "", 0)
	pass.FlushInterval = -1
	proxy = httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/left" {
			w.WriteHeader(http.StatusInternalServerError) // refunded
			return
		}
		pass.ServeHTTP(w, r)
	})))
	proxy.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(proxy.Close)
	return proxy, func() string {
		r, err := proxy.Client().Get(proxy.URL + "/left")
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		return r.Header.Get("Ratelimit-Remaining")
	}
}

func TestSettlingBehindAProxy(t *testing.T) {
	event := func(w http.ResponseWriter, n int) {
		fmt.Fprintf(w, "data: {\"usage\":{\"total_tokens\":%d}}\n\n", n)
		w.(http.Flusher).Flush()
	}
	for name, c := range map[string]struct {
		upstream http.HandlerFunc
		want     string
	}{
		"a stream": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			event(w, 5)
			event(w, 7)
		}, "993"},
		"a stream that the upstream cuts": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			event(w, 5)
			panic(http.ErrAbortHandler)
		}, "900"},
		"a long stream that the upstream cuts": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			event(w, 500)
			panic(http.ErrAbortHandler)
		}, "500"},
		"an upstream that hangs up": {func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, "1000"},
		"an upstream that fails":    {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "1000"},
		"a document": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"usage":{"total_tokens":7}}`)
		}, "993"},
	} {
		t.Run(name, func(t *testing.T) {
			proxy, left := behind(t, c.upstream)
			r, err := proxy.Client().Do(must(http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL, strings.NewReader("{}"))))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, r.Body)
			r.Body.Close()
			if got := left(); got != c.want {
				t.Errorf("%s left, want %s", got, c.want)
			}
		})
	}
}

// Who hangs up early is given nothing back.
func TestHangingUpIsNotRefunded(t *testing.T) {
	arrived, ended := make(chan struct{}), make(chan struct{})
	proxy, left := behind(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // net/http then looks whether the client is there
		if r.URL.Path == "/early" {
			close(arrived)
			<-r.Context().Done()
			close(ended)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, hangUp := context.WithCancel(t.Context())
	go func() {
		<-arrived
		hangUp()
	}()
	if _, err := proxy.Client().Do(must(http.NewRequestWithContext(ctx, http.MethodPost, proxy.URL+"/early", strings.NewReader("{}")))); err == nil {
		t.Fatal("answered")
	}
	<-ended
	if got := left(); got != "900" {
		t.Errorf("after hanging up before the answer: %s left, want 900", got)
	}
	ctx, hangUp = context.WithCancel(t.Context())
	r, err := proxy.Client().Do(must(http.NewRequestWithContext(ctx, http.MethodPost, proxy.URL+"/late", strings.NewReader("{}"))))
	if err != nil {
		t.Fatal(err)
	}
	hangUp()
	_, _ = bufio.NewReader(r.Body).ReadByte()
	if got := left(); got != "800" {
		t.Errorf("after hanging up in the answer: %s left, want 800", got)
	}
}
