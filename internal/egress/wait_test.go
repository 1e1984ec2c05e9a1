package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/config"
)

// A wire is an API in a bubble: it answers at once, and knows when it was asked.
type wire struct {
	mu     sync.Mutex
	began  time.Time
	came   []time.Duration
	answer func(n int, req *http.Request) (status int, retryAfter string)
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.came = append(w.came, time.Since(w.began))
	status, retryAfter := w.answer(len(w.came), req)
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("from the API")), Request: req, ProtoMajor: 1, ProtoMinor: 1}
	if retryAfter != "" {
		resp.Header.Set("Retry-After", retryAfter)
	}
	return resp, nil
}

// bubble makes a gateway to a wire, in a bubble in which time is made up.
func bubble(t *testing.T, api string, limit client.Outbound, carrier http.RoundTripper, then func(t *testing.T, g *Gateway)) {
	synctest.Test(t, func(t *testing.T) {
		cfg, err := config.ParseEgress("egress.yaml", []byte(`{listen: "127.0.0.1:0", metrics: "off", apis: [{name: pay, path: /, upstream: "http://api.test"`+api+`}]}`))
		if err != nil {
			t.Fatal(err)
		}
		limits := map[string]client.Outbound{}
		if limit != nil {
			limits["pay"] = limit
		}
		g, err := New(Options{Config: cfg, Limits: limits, Log: slog.New(slog.DiscardHandler), Transport: carrier})
		if err != nil {
			t.Fatal(err)
		}
		defer g.listener.Close()
		if w, ok := carrier.(*wire); ok {
			w.began = time.Now()
		}
		then(t, g)
	})
}

// ask sends a GET through the gateway.
func ask(ctx context.Context, g *Gateway, key string) *http.Response {
	req := httptest.NewRequestWithContext(ctx, "GET", "/x", nil)
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, req)
	return w.Result()
}

// After a 429 nobody's request leaves before the time that the API told.
func TestNothingLeavesWhileTheGateIsShut(t *testing.T) {
	w := &wire{answer: func(n int, _ *http.Request) (int, string) {
		if n == 1 {
			return 429, "5"
		}
		return 200, ""
	}}
	bubble(t, "", nil, w, func(t *testing.T, g *Gateway) {
		var programs sync.WaitGroup
		for range 10 {
			programs.Go(func() {
				if resp := ask(t.Context(), g, ""); resp.StatusCode != 200 {
					t.Error(resp.Status)
				}
			})
			synctest.Wait() // the first has its answer
		}
		programs.Wait()
		if len(w.came) != 11 || w.came[0] != 0 || slices.Min(w.came[1:]) < 5*time.Second {
			t.Error(w.came)
		}
	})
}

// Retry-After is true: before it is over the answer is the same, and then the
// request passes.
func TestRetryAfterIsTrue(t *testing.T) {
	w := &wire{answer: func(n int, _ *http.Request) (int, string) {
		if n == 1 {
			return 429, "100"
		}
		return 200, ""
	}}
	bubble(t, ", max_wait: 10s", nil, w, func(t *testing.T, g *Gateway) {
		if resp := ask(t.Context(), g, ""); resp.StatusCode != 429 || resp.Header.Get(reasonField) != "too-long" || resp.Header.Get("Retry-After") != "100" {
			t.Error(resp.StatusCode, resp.Header)
		}
		time.Sleep(40*time.Second + 200*time.Millisecond)
		resp := ask(t.Context(), g, "")
		if resp.StatusCode != 429 || resp.Header.Get(reasonField) != "gate" || resp.Header.Get("Retry-After") != "60" {
			t.Error(resp.StatusCode, resp.Header)
		}
		time.Sleep(48 * time.Second)
		if resp := ask(t.Context(), g, ""); resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "12" {
			t.Error(resp.StatusCode, resp.Header)
		}
		time.Sleep(12 * time.Second)
		if resp := ask(t.Context(), g, ""); resp.StatusCode != 200 || len(w.came) != 2 {
			t.Error(resp.StatusCode, resp.Header, w.came)
		}
	})
}

// A program that hangs up is in line no more, and its request is not sent.
func TestWhoHangsUpLeavesTheLine(t *testing.T) {
	w := &wire{answer: func(int, *http.Request) (int, string) { return 200, "" }}
	limit := outbound(func(string) (comporta.Decision, error) { return comporta.Decision{RetryAfter: 30 * time.Second}, nil })
	bubble(t, "", limit, w, func(t *testing.T, g *Gateway) {
		ctx, hangUp := context.WithCancel(t.Context())
		defer hangUp()
		answered := make(chan struct{})
		go func() { defer close(answered); ask(ctx, g, "") }()
		synctest.Wait()
		if waiting := g.apis[0].transport.Stats().Waiting; waiting != 1 {
			t.Errorf("%d wait, want 1", waiting)
		}
		time.Sleep(5 * time.Second)
		hangUp()
		<-answered
		if took := time.Since(w.began); took != 5*time.Second || g.apis[0].transport.Stats().Waiting != 0 || len(w.came) != 0 {
			t.Error(took, g.apis[0].transport.Stats(), w.came)
		}
	})
}

// A request whose time is over is told so, whatever the transport calls it; its
// program is still there.
func TestTimeout(t *testing.T) {
	for _, transport := range []error{context.DeadlineExceeded, errors.New("broken pipe")} {
		carrier := roundTrip(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, transport
		})
		bubble(t, ", timeout: 5s", nil, carrier, func(t *testing.T, g *Gateway) {
			began := time.Now()
			if resp := ask(t.Context(), g, ""); resp.StatusCode != 504 || time.Since(began) != 5*time.Second {
				t.Errorf("%v: %s after %v", transport, resp.Status, time.Since(began))
			}
		})
	}
}

// With per, each value of the field has a gate and an account of its own, and none
// is kept as it is.
func TestPer(t *testing.T) {
	var accounts []string
	limit := outbound(func(identity string) (comporta.Decision, error) {
		accounts = append(accounts, identity)
		return comporta.Decision{Allowed: true}, nil
	})
	w := &wire{answer: func(n int, _ *http.Request) (int, string) {
		if n == 1 {
			return 429, "30"
		}
		return 200, ""
	}}
	bubble(t, ", per: header:X-Api-Key, max_wait: 1s", limit, w, func(t *testing.T, g *Gateway) {
		for _, c := range []struct {
			key    string
			status int
		}{{"hush-one", 429}, {"hush-two", 200}, {"", 200}, {"hush-one", 429}} {
			if resp := ask(t.Context(), g, c.key); resp.StatusCode != c.status {
				t.Errorf("%q: %d, want %d", c.key, resp.StatusCode, c.status)
			}
		}
		if len(w.came) != 3 || len(accounts) != 3 || strings.Contains(strings.Join(accounts, " "), "hush") || accounts[0] == accounts[1] || accounts[1] == accounts[2] {
			t.Error(w.came, accounts)
		}
	})
}

// Of what the programs and the API say, only the API's own name becomes a label.
func TestMetricsHaveFewLabels(t *testing.T) {
	w := &wire{answer: func(n int, _ *http.Request) (int, string) { return 429, "600" }}
	bubble(t, ", per: header:X-Api-Key", nil, w, func(t *testing.T, g *Gateway) {
		for _, key := range []string{"hush-1", "hush-2", "hush-3", "hush-1"} {
			ask(t.Context(), g, key)
		}
		answer := httptest.NewRecorder()
		g.health().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		text := answer.Body.String()
		for _, want := range []string{
			`comporta_egress_attempts_total{api="pay"} 3`, `comporta_egress_refused_total{api="pay"} 3`, `comporta_egress_gates_total{api="pay"} 3`,
			`comporta_egress_abandoned_total{api="pay",reason="too-long"} 3`, `comporta_egress_declined_total{api="pay",reason="gate"} 1`, `comporta_egress_waiting{api="pay"} 0`,
		} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
		if strings.Contains(text, "hush") || bytes.Contains(answer.Body.Bytes(), []byte("api.test")) {
			t.Error(text)
		}
	})
}
