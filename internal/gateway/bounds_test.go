package gateway

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// A stalled body is one whose next piece does not come before its deadline.
type stalled struct{}

func (*stalled) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
func (*stalled) Close() error             { return nil }

// deadlines is an answer that notes the deadlines that are set.
type deadlines struct {
	http.ResponseWriter
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

func TestABodyThatStopsComingIs408(t *testing.T) {
	h := serve(t, "http://127.0.0.1:9", generous, nil)
	w := &deadlines{ResponseWriter: httptest.NewRecorder()}
	b := &body{ReadCloser: new(stalled), deadline: http.NewResponseController(w)}
	_, err := io.ReadAll(b)
	if !errors.Is(err, errSlowBody) {
		t.Errorf("%v", err)
	}
	if len(w.set) != 1 || time.Until(w.set[0]) > bodyTimeout || time.Until(w.set[0]) < bodyTimeout/2 {
		t.Errorf("deadlines %v", w.set)
	}
	answer := httptest.NewRecorder()
	h.desk(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.reign.Load().answerFailure(w, r, err) })).
		ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", nil))
	if answer.Code != http.StatusRequestTimeout {
		t.Errorf("status %d", answer.Code)
	}
}

// After its end a body's deadline must not hit the reading that net/http goes on
// with; before its end, what is left of it must not be waited for without one.
func TestABodyLeavesTheConnectionInOrder(t *testing.T) {
	for name, test := range map[string]struct {
		read bool
		want func(time.Time) bool
	}{
		"read to its end": {true, time.Time.IsZero},
		"left":            {false, func(d time.Time) bool { return time.Until(d) > 0 && time.Until(d) <= bodyTimeout }},
	} {
		w := &deadlines{ResponseWriter: httptest.NewRecorder()}
		b := &body{ReadCloser: http.NoBody, deadline: http.NewResponseController(w)}
		if test.read {
			_, _ = io.ReadAll(b)
		}
		b.leave()
		b.arm() // a reader that was late
		if last := w.set[len(w.set)-1]; !test.want(last) {
			t.Errorf("%s: the last of the deadlines %v", name, w.set)
		}
	}
}

// A refusal waits for the request's body, which an attacker never sends.
func TestARefusalDoesNotWaitForTheBodyForEver(t *testing.T) {
	h := serve(t, api(t, hello), "limits: [{name: a, match: /no, per: everyone, limit: 0/s}]", nil,
		func(o *Options) { o.Server.MaxBodyBytes = 10 })
	for _, test := range []struct {
		method, target, body string
		status               int
		bounded              bool
	}{
		{http.MethodPost, "/no", "a body", http.StatusTooManyRequests, true},
		{http.MethodPost, "/%2f", "a body", http.StatusBadRequest, true},
		{http.MethodPost, "/yes", "a body over the bound", http.StatusRequestEntityTooLarge, true},
		{http.MethodGet, "/no", "", http.StatusTooManyRequests, false},
	} {
		answer := httptest.NewRecorder()
		w := &deadlines{ResponseWriter: answer}
		h.public.Handler.ServeHTTP(w, httptest.NewRequest(test.method, test.target, strings.NewReader(test.body)))
		if answer.Code != test.status || (len(w.set) == 1) != test.bounded {
			t.Errorf("%s %s: status %d, deadlines %v", test.method, test.target, answer.Code, w.set)
		}
		if len(w.set) > 0 && (time.Until(w.set[0]) > leftTimeout || time.Until(w.set[0]) < leftTimeout/2) {
			t.Errorf("%s %s: deadlines %v", test.method, test.target, w.set)
		}
	}
}

// The upstream has read what it was asked and works; then the body turns out to be
// none. That is not a failure of the upstream's, for which the cost would be given back.
func TestWhoBreaksABodyIsGivenNothingBack(t *testing.T) {
	asked := make(chan string)
	up := api(t, func(_ http.ResponseWriter, r *http.Request) {
		var said struct{ Prompt string }
		_ = json.NewDecoder(r.Body).Decode(&said)
		asked <- said.Prompt
		_, _ = io.Copy(io.Discard, r.Body)
	})
	h := serve(t, up, "limits: [{name: tokens, per: address, limit: 100/h, cost: {estimate: {default: 60}, from: {response_json: used}, refund: upstream_failure}}]", nil)
	c, err := net.Dial("tcp", h.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, "POST /chat HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n12\r\n"+`{"prompt":"hello"}`+"\r\n")
	if got := <-asked; got != "hello" {
		t.Fatalf("the upstream is asked %q", got)
	}
	_, _ = io.WriteString(c, "no length\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if left := res.Header.Get("Ratelimit-Remaining"); res.StatusCode != http.StatusBadRequest || left != "40" {
		t.Errorf("%s, %s remain", res.Status, left)
	}
}
