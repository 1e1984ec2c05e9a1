package egress

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/config"
)

// An outbound is a limit made of a function.
type outbound func(identity string) (comporta.Decision, error)

func (f outbound) Take(_ context.Context, identity string, _ int64) (comporta.Decision, error) {
	return f(identity)
}

// begin runs a gateway until stop, which returns when it has ended.
func begin(t *testing.T, apis string, patience time.Duration, limits map[string]client.Outbound, logs io.Writer) (g *Gateway, stop func()) {
	t.Helper()
	cfg, err := config.ParseEgress("egress.yaml", []byte("listen: 127.0.0.1:0\nmetrics: 127.0.0.1:0\napis:\n"+apis))
	if err != nil {
		t.Fatal(err)
	}
	if g, err = New(Options{Config: cfg, Limits: limits, Log: slog.New(slog.NewJSONHandler(logs, nil))}); err != nil {
		t.Fatal(err)
	}
	g.drain = patience
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	return g, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A request that is still in line when the time to stop is over is answered, and
// not hung up on.
func TestStopAnswersThoseInLine(t *testing.T) {
	p := newThirdParty(t, func(http.ResponseWriter, *http.Request) {})
	asked := make(chan struct{}, 1)
	limits := map[string]client.Outbound{"pay": outbound(func(string) (comporta.Decision, error) {
		asked <- struct{}{}
		return comporta.Decision{RetryAfter: time.Hour}, nil
	})}
	var logs syncBuffer
	g, stop := begin(t, `- {name: pay, path: /, upstream: "`+p.URL+`", max_wait: 2h, timeout: 3h}`, time.Millisecond, limits, &logs)
	type answer struct {
		resp *http.Response
		body string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		resp, err := http.Get("http://" + g.Addr() + "/x")
		if err != nil {
			answers <- answer{err: err}
			return
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		answers <- answer{resp, string(body), err}
	}()
	<-asked
	stop()
	a := <-answers
	if a.err != nil {
		t.Fatal(a.err)
	}
	if a.resp.StatusCode != 503 || a.resp.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(a.body, "The gateway stopped") {
		t.Error(a.resp.Status, a.resp.Header, a.body)
	}
	if len(p.bodies) != 0 {
		t.Error("it was sent")
	}
	if !strings.Contains(logs.String(), "are cut off") || !strings.Contains(logs.String(), "egress has stopped") {
		t.Error(logs.String())
	}
}

// What is under way when the gateway is told to stop ends as it would have, and
// meanwhile nobody is sent to it.
func TestStopWaitsForThoseUnderWay(t *testing.T) {
	came, release := make(chan struct{}), make(chan struct{})
	p := newThirdParty(t, func(w http.ResponseWriter, _ *http.Request) {
		close(came)
		<-release
		io.WriteString(w, "hello")
	})
	g, stop := begin(t, `- {name: pay, path: /, upstream: "`+p.URL+`"}`, time.Minute, nil, io.Discard)
	bodies := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + g.Addr() + "/x")
		if err != nil {
			bodies <- err.Error()
			return
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		bodies <- string(body)
	}()
	<-came
	if resp, _ := get(t, "http://"+g.MetricsAddr()+"/readyz"); resp.StatusCode != 200 {
		t.Error(resp.Status)
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	for status := 0; status != 503; { // it is on its way
		resp, _ := get(t, "http://"+g.MetricsAddr()+"/readyz")
		status = resp.StatusCode
	}
	if resp, _ := get(t, "http://"+g.MetricsAddr()+"/healthz"); resp.StatusCode != 200 {
		t.Error(resp.Status)
	}
	close(release)
	if body := <-bodies; body != "hello" {
		t.Errorf("%q", body)
	}
	<-stopped
	if _, err := http.Get("http://" + g.Addr() + "/x"); err == nil {
		t.Error("it listens still")
	}
}

// Where an address is taken, nothing is left listening.
func TestAddressTaken(t *testing.T) {
	p := newThirdParty(t, func(http.ResponseWriter, *http.Request) {})
	cfg, err := config.ParseEgress("egress.yaml", []byte("listen: 127.0.0.1:0\nmetrics: "+p.Listener.Addr().String()+"\napis: [{name: a, path: /, upstream: \"http://127.0.0.1:1\"}]"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "address already in use") || g != nil {
		t.Error(g, errors.Unwrap(err))
	}
}
