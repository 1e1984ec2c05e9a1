package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
)

// A server answers requests in a bubble, and remembers when they came.
type server struct {
	mu     sync.Mutex
	came   []time.Duration
	bodies []string
	began  time.Time
	answer func(n int, req *http.Request) (status int, header http.Header)
	takes  time.Duration
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	body := ""
	if req.Body != nil {
		b, _ := io.ReadAll(req.Body)
		req.Body.Close()
		body = string(b)
	}
	s.mu.Lock()
	s.came = append(s.came, time.Since(s.began))
	s.bodies = append(s.bodies, body)
	n := len(s.came)
	status, header := s.answer(n, req)
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("body")), Request: req}, nil
}

func retryAfter(v string) http.Header { return http.Header{"Retry-After": {v}} }

func bubble(t *testing.T, s *server, o Options, f func(c *http.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.began = time.Now()
		o.Transport = s
		f(&http.Client{Transport: New(o)})
	})
}

func TestWaitsAsTold(t *testing.T) {
	s := &server{answer: func(n int, _ *http.Request) (int, http.Header) {
		if n == 1 {
			return 429, retryAfter("2")
		}
		return 200, nil
	}}
	bubble(t, s, Options{}, func(c *http.Client) {
		resp, err := c.Get("http://api.test/")
		if err != nil || resp.StatusCode != 200 || GaveUp(resp) != nil {
			t.Fatal(resp, err)
		}
		if len(s.came) != 2 || s.came[1] < 2*time.Second || s.came[1] > 2500*time.Millisecond {
			t.Error(s.came)
		}
	})
}

func TestTooLongComesBack(t *testing.T) {
	s := &server{answer: func(int, *http.Request) (int, http.Header) { return 429, retryAfter("600") }}
	bubble(t, s, Options{}, func(c *http.Client) {
		c.Timeout = time.Hour
		resp, err := c.Get("http://api.test/")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		why := GaveUp(resp)
		if string(b) != "body" || err != nil || why == nil || why.Reason != ReasonTooLong || why.RetryAfter != 10*time.Minute || why.Attempts != 1 {
			t.Error(string(b), err, why)
		}
		_, err = c.Get("http://api.test/other")
		var e *RateLimitError
		if !errors.As(err, &e) || e.Reason != ReasonGate || e.RetryAfter != 10*time.Minute || len(s.came) != 1 {
			t.Error(err, s.came)
		}
	})
}

func TestGateHoldsAll(t *testing.T) {
	s := &server{takes: 10 * time.Millisecond, answer: func(n int, _ *http.Request) (int, http.Header) {
		if n == 1 {
			return 429, retryAfter("5")
		}
		return 200, nil
	}}
	bubble(t, s, Options{}, func(c *http.Client) {
		c.Post("http://api.test/", "text/plain", strings.NewReader("x")) // refused, not sent again
		var wg sync.WaitGroup
		var mu sync.Mutex
		var order []int
		for i := range 100 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Microsecond)
				resp, err := c.Get("http://api.test/")
				if err != nil || resp.StatusCode != 200 {
					t.Error(err)
				}
				resp.Body.Close()
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			})
		}
		wg.Wait()
		for i := range order {
			if i > 0 && order[i] < order[i-1] {
				t.Errorf("not in line: %v", order)
				break
			}
		}
		if s.came[1] < 5*time.Second {
			t.Error(s.came[:3])
		}
		t.Log(s.came)
	})
}

func TestCancelInLine(t *testing.T) {
	s := &server{answer: func(n int, _ *http.Request) (int, http.Header) { return 429, retryAfter("50") }}
	bubble(t, s, Options{RetryRefused: true}, func(c *http.Client) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.test/", nil)
		resp, err := c.Do(req)
		if err != nil || GaveUp(resp).Reason != ReasonDeadline {
			t.Fatal(err, GaveUp(resp))
		}
		ctx2, cancel2 := context.WithCancel(context.Background())
		done := make(chan error)
		go func() {
			req, _ := http.NewRequestWithContext(ctx2, "GET", "http://api.test/", nil)
			_, err := c.Do(req)
			done <- err
		}()
		time.Sleep(time.Second)
		cancel2()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if time.Since(s.began) != time.Second || len(s.came) != 1 {
			t.Error(time.Since(s.began), s.came)
		}
	})
}

func TestOutboundLimit(t *testing.T) {
	s := &server{takes: time.Millisecond, answer: func(n int, _ *http.Request) (int, http.Header) { return 200, nil }}
	synctest.Test(t, func(t *testing.T) {
		s.began = time.Now()
		store, err := memstore.New(memstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		limit, _ := comporta.ParseLimit("10/s burst 1")
		limiter, _ := comporta.NewLimiter(store, limit)
		var wg sync.WaitGroup
		for range 2 {
			c := &http.Client{Transport: New(Options{Transport: s, Limit: limiter})}
			for range 50 {
				wg.Go(func() {
					resp, err := c.Get("http://api.test/")
					if err != nil {
						t.Error(err)
						return
					}
					resp.Body.Close()
				})
			}
		}
		wg.Wait()
		if took := time.Since(s.began); took < 9900*time.Millisecond || took > 11*time.Second {
			t.Error(took)
		}
	})
}

func TestBodies(t *testing.T) {
	s := &server{answer: func(n int, _ *http.Request) (int, http.Header) {
		if n%2 == 1 {
			return 429, retryAfter("1")
		}
		return 200, nil
	}}
	bubble(t, s, Options{RetryRefused: true}, func(c *http.Client) {
		resp, err := c.Post("http://api.test/", "text/plain", strings.NewReader("hello"))
		if err != nil || resp.StatusCode != 200 || s.bodies[0] != "hello" || s.bodies[1] != "hello" {
			t.Error(err, s.bodies)
		}
		resp, err = c.Post("http://api.test/", "text/plain", io.MultiReader(strings.NewReader("stream")))
		if err != nil || resp.StatusCode != 429 || GaveUp(resp).Reason != ReasonUnsafe || len(s.bodies) != 3 {
			t.Error(err, s.bodies, GaveUp(resp))
		}
	})
}
