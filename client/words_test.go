package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// Other words for a time to wait, or for that no waiting helps.
func TestOtherWords(t *testing.T) {
	json := func(status int, body string, fields ...string) func(int, http.ResponseWriter, *http.Request) {
		return func(n int, w http.ResponseWriter, r *http.Request) {
			if n > 1 {
				return
			}
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			for i := 0; i < len(fields); i += 2 {
				w.Header().Set(fields[i], fields[i+1])
			}
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	date := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // by the server's clock
	inNine := fmt.Sprint(date.Add(9 * time.Second).Unix())
	for _, c := range []struct {
		name    string
		handler func(int, http.ResponseWriter, *http.Request)
		gap     time.Duration
		why     Reason
	}{
		{"a reset, and nothing remains", json(429, "{}", "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "7"), 7 * time.Second, ""},
		{"a reset, and something remains", json(429, "{}", "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "3", "X-RateLimit-Reset", "7"), 500 * time.Millisecond, ""},
		{"a reset beside a time", json(429, "{}", "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "2", "Retry-After", "5"), 5 * time.Second, ""},
		{"GitHub's 403", json(403, "{}", "X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", inNine, "Date", date.Format(http.TimeFormat)), 9 * time.Second, ""},
		{"another 403", json(403, "{}"), 0, ""},
		{"Discord's body", json(429, `{"message": "You are being rate limited.", "retry_after": 2.5, "global": false}`), 2500 * time.Millisecond, ""},
		{"Google's body", json(503, `{"error": {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "4s"}]}}`), 4 * time.Second, ""},
		{"a body with less than the header", json(429, `{"retry_after": 1}`, "Retry-After", "3"), 3 * time.Second, ""},
		{"an account without money", json(429, `{"error": {"code": "insufficient_quota"}}`), 0, ReasonForbidden},
		{"a broken body", json(429, `{"retry_after": `, "Retry-After", "3"), 3 * time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, c.handler, func(s *rig) {
				o := steady()
				o.Pace = Off
				h, _ := s.client(o)
				resp, _ := s.get(h, "http://api.test/")
				if c.gap > 0 {
					s.want(0, c.gap)
					return
				}
				s.want(0)
				if why := GaveUp(resp); (why == nil) != (c.why == "") || why != nil && why.Reason != c.why {
					t.Error(why)
				}
			})
		})
	}
}

// Errors say what happened, and nothing of the request but its host.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err  *RateLimitError
		want string
	}{
		{&RateLimitError{Host: "api.test", Reason: ReasonGate, RetryAfter: 1500 * time.Millisecond}, "client: api.test: not sent, since the server said not to call yet; try again after 1.5s"},
		{&RateLimitError{Host: "api.test", Reason: ReasonLimit, RetryAfter: comporta.Never}, "client: api.test: not sent, since the outbound limit does not allow it; it is never to be sent again"},
		{&RateLimitError{Host: "api.test", Reason: ReasonLimit, Err: errors.New("no store")}, "client: api.test: not sent, since the outbound limit does not allow it: no store"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q; want %q", got, c.want)
		}
	}
	for _, r := range []Reason{ReasonGate, ReasonLine, ReasonLimit, ReasonThrottle, ReasonTooLong, ReasonDeadline, ReasonAttempts, ReasonBudget, ReasonUnsafe, ReasonForbidden, ReasonFinal} {
		if says[r] == "" {
			t.Error(r, "says nothing")
		}
	}
	if GaveUp(nil) != nil || GaveUp(&http.Response{}) != nil {
		t.Error("nothing gave up")
	}
	inBubble(t, tell(1, retryIn("600")), func(s *rig) {
		h, _ := s.client(steady())
		for range 2 {
			req, _ := http.NewRequest("GET", "http://user:secret@api.test/secret?key=secret", nil)
			req.Header.Set("Authorization", "secret")
			resp, err := h.Transport.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
				err = GaveUp(resp)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Error(err)
			}
		}
	})
}

// What is asked before its body is sent.
func TestExpect(t *testing.T) {
	for _, c := range []struct {
		length int64
		above  int64
		body   bool
		asks   bool
	}{
		{1 << 20, 0, true, true}, {1<<20 - 1, 0, true, false}, {-1, 0, true, true}, {-1, -1, true, false}, {1 << 30, -1, true, false},
		{100, 100, true, true}, {99, 100, true, false}, {0, 0, false, false},
	} {
		var got string
		o := Options{ExpectAbove: c.above, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.Header.Get("Expect")
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})}
		req, _ := http.NewRequest("POST", "http://api.test/", nil)
		if c.body {
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader("")), c.length
		}
		if _, err := New(o).RoundTrip(req); err != nil || (got != "") != c.asks {
			t.Errorf("%+v: Expect is %q, %v", c, got, err)
		}
	}
}

// CONNECT is sent once, whatever becomes of it.
func TestConnect(t *testing.T) {
	calls := 0
	o := Options{RetryRefused: true, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		calls++
		return &http.Response{StatusCode: 429, Body: http.NoBody}, nil
	})}
	req, _ := http.NewRequest("CONNECT", "http://api.test/", nil)
	req.Header.Set("Idempotency-Key", "1")
	resp, err := New(o).RoundTrip(req)
	if err != nil || calls != 1 || GaveUp(resp).Reason != ReasonUnsafe {
		t.Error(calls, err, GaveUp(resp))
	}
}

// CloseIdleConnections reaches the transport beneath.
func TestCloseIdleConnections(t *testing.T) {
	inner := &closer{}
	(&http.Client{Transport: New(Options{Transport: inner})}).CloseIdleConnections()
	if !inner.closed {
		t.Error("it was not told")
	}
	New(Options{Transport: roundTrip(nil)}).CloseIdleConnections()
}

type closer struct {
	roundTrip
	closed bool
}

func (c *closer) CloseIdleConnections() { c.closed = true }

// What a server says outside an attempt shuts the gate, and counts as none.
func TestLearn(t *testing.T) {
	c := NewCaller(Options{})
	c.Learn("api.test", "", Answer{Kind: Refused, Told: true, Wait: time.Hour})
	err := c.Do(t.Context(), &Call{Target: "api.test"}, nil)
	var why *RateLimitError
	if !errors.As(err, &why) || why.Reason != ReasonGate || why.RetryAfter < 59*time.Minute || c.Stats().Attempts != 0 || c.Stats().Gates != 1 {
		t.Error(err, c.Stats())
	}
}
