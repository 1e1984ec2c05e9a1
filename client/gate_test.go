package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// shut is a handler whose first answer shuts the gate.
func shut(value string) func(int, http.ResponseWriter, *http.Request) { return tell(1, retryIn(value)) }

// once makes one request, which is not sent again.
func (s *rig) once(c *http.Client) {
	req, _ := http.NewRequestWithContext(NoRetry(context.Background()), "GET", "http://api.test/first", nil)
	resp, err := c.Do(req)
	if err != nil {
		s.t.Error(err)
		return
	}
	resp.Body.Close()
}

// A thousand goroutines against one gate: none starts before its time; when it
// opens they leave one by one, in the order in which they came.
func TestThousandAtTheGate(t *testing.T) {
	const n = 1000
	var order []int
	inBubble(t, func(k int, w http.ResponseWriter, r *http.Request) {
		if k > 1 {
			i, _ := strconv.Atoi(r.Header.Get("Number"))
			order = append(order, i)
		}
		shut("5")(k, w, r)
	}, func(s *rig) {
		h, tr := s.client(Options{})
		s.once(h)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				req, _ := http.NewRequest("POST", "http://api.test/", nil)
				req.Header.Set("Number", strconv.Itoa(i))
				resp, err := h.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			})
		}
		time.Sleep(4 * time.Second)
		if stats := tr.Stats(); stats.Waiting != n || len(s.arrivals()) != 1 {
			t.Error(stats.Waiting, len(s.arrivals()))
		}
		all.Wait()
		came := s.arrivals()[1:]
		if len(came) != n || came[0] < 5*time.Second || came[0] > 5500*time.Millisecond {
			t.Fatal(len(came), came[0])
		}
		if !slices.IsSorted(order) {
			t.Error("not in the order in which they came:", order)
		}
		for i := 1; i < 100; i++ {
			if came[i] == came[i-1] {
				t.Fatalf("%d and %d leave together, at %v", i-1, i, came[i])
			}
		}
		if gap := came[1] - came[0]; gap < 40*time.Millisecond {
			t.Error("the first two leave", gap, "apart")
		}
		if stats := tr.Stats(); stats.Waiting != 0 || stats.Gates != 1 || stats.Waits != n || stats.Waited < n*4*time.Second {
			t.Error(stats)
		}
	})
}

// The line is bounded, and its places too: who would wait too long is told at once.
func TestLineIsBounded(t *testing.T) {
	for _, c := range []struct {
		name       string
		maxWaiters int
		retryAfter string
		sent       int // of 100, in the end
	}{
		{"waiters", 10, "5", 10},
		{"places", 0, "58", 41}, // 50 ms each, up to the 60th second
	} {
		inBubble(t, shut(c.retryAfter), func(s *rig) {
			o := steady()
			o.MaxWaiters = c.maxWaiters
			h, tr := s.client(o)
			s.once(h)
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					resp, err := h.Get("http://api.test/")
					var why *RateLimitError
					switch {
					case err == nil:
						resp.Body.Close()
					case !errors.As(err, &why) || why.Reason != ReasonLine || why.Attempts != 0 || why.RetryAfter < 5*time.Second || time.Since(s.began) > 0:
						t.Error(err, time.Since(s.began))
					}
				})
			}
			all.Wait()
			if sent := len(s.arrivals()) - 1; sent != c.sent || tr.Stats().Declined[ReasonLine] != uint64(100-c.sent) {
				t.Errorf("%s: %d were sent, %v", c.name, sent, tr.Stats())
			}
		})
	}
}

// Who gives up in line leaves at once, and holds up nobody.
func TestCancelledInLine(t *testing.T) {
	inBubble(t, shut("5"), func(s *rig) {
		h, tr := s.client(steady())
		s.once(h)
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				with := context.Background()
				if i%2 == 0 {
					with = ctx
				}
				req, _ := http.NewRequestWithContext(with, "GET", "http://api.test/", nil)
				resp, err := h.Do(req)
				if i%2 == 1 {
					if err != nil {
						t.Error(err)
						return
					}
					resp.Body.Close()
				} else if !errors.Is(err, context.Canceled) || time.Since(s.began) != time.Second {
					t.Error(err, time.Since(s.began))
				}
			})
		}
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		if waiting := tr.Stats().Waiting; waiting != 50 {
			t.Error(waiting, "wait; want 50")
		}
		all.Wait()
		if sent := len(s.arrivals()); sent != 51 {
			t.Error(sent, "were sent; want 51")
		}
	})
}

// A deadline before the gate opens is told at once; one after it is kept.
func TestDeadlines(t *testing.T) {
	inBubble(t, shut("5"), func(s *rig) {
		h, _ := s.client(steady())
		s.once(h)
		get := func(timeout time.Duration) error {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.test/", nil)
			resp, err := h.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
		var why *RateLimitError
		for _, timeout := range []time.Duration{time.Second, 5 * time.Second} {
			if err := get(timeout); !errors.As(err, &why) || why.Reason != ReasonGate || why.RetryAfter != 5*time.Second || time.Since(s.began) > 0 {
				t.Error(err, time.Since(s.began))
			}
		}
		if err := get(5*time.Second + 1); err != nil {
			t.Error(err)
		}
		s.want(0, 5*time.Second)
	})
}

// A refusal whose time is past the deadline comes back at once.
func TestRefusedPastTheDeadline(t *testing.T) {
	inBubble(t, shut("50"), func(s *rig) {
		h, tr := s.client(Options{})
		h.Timeout = 50 * time.Second
		resp, body := s.get(h, "http://api.test/")
		if why := GaveUp(resp); body != "slow down" || why == nil || why.Reason != ReasonDeadline || why.RetryAfter != 50*time.Second || time.Since(s.began) > 0 {
			t.Error(body, why, time.Since(s.began))
		}
		if stats := tr.Stats(); stats.Abandoned[ReasonDeadline] != 1 || stats.Waits != 0 {
			t.Error(stats)
		}
	})
}

// A response that comes later may move the gate later, never earlier; who can no
// longer be in time is told at once.
func TestGateMoves(t *testing.T) {
	takes := []time.Duration{time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second}
	told := []string{"10", "1", "30", "600"}
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n <= len(takes) {
			time.Sleep(takes[n-1])
			w.Header().Set("Retry-After", told[n-1])
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}, func(s *rig) {
		h, _ := s.client(steady())
		for range takes {
			go s.once(h)
			synctest.Wait()
		}
		time.Sleep(2 * time.Millisecond)
		// Now the gate is shut until 10 s, by the first; the second, at 1 s, changes nothing.
		var all sync.WaitGroup
		wait := func(timeout, fails, retryAfter time.Duration) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), timeout)
				defer cancel()
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.test/", nil)
				_, err := h.Do(req)
				var why *RateLimitError
				if !errors.As(err, &why) || why.Reason != ReasonGate || time.Since(s.began) != fails || why.RetryAfter != retryAfter {
					t.Errorf("%v at %v; want at %v, to wait %v", err, time.Since(s.began), fails, retryAfter)
				}
			})
		}
		wait(20*time.Second, 2*time.Second, 30*time.Second)
		wait(55*time.Second, 3*time.Second, 10*time.Minute)
		wait(59*time.Second, 3*time.Second, 10*time.Minute)
		all.Wait()
		s.want(0, 0, 0, 0)
		if got := time.Since(s.began); got != 3*time.Second {
			t.Error(got)
		}
	})
}

// Who waits to be sent again is told so too, and has the last answer.
func TestGateMovesBeforeARetry(t *testing.T) {
	inBubble(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			time.Sleep(time.Second)
			shut("600")(1, w, r)
			return
		}
		time.Sleep(time.Millisecond)
		shut("40")(1, w, r)
	}, func(s *rig) {
		_, tr := s.client(steady())
		var all sync.WaitGroup
		for timeout, reason := range map[time.Duration]Reason{time.Hour: ReasonTooLong, 50 * time.Second: ReasonDeadline} {
			h := &http.Client{Transport: tr, Timeout: timeout}
			url := "http://" + string(reason) + ".test"
			all.Go(func() { s.get(h, url+"/late") })
			all.Go(func() {
				resp, body := s.get(h, url+"/early")
				why := GaveUp(resp)
				if body != "slow down" || why == nil || why.Reason != reason || why.RetryAfter != 10*time.Minute || time.Since(s.began) != time.Second {
					t.Error(resp.StatusCode, why, time.Since(s.began))
				}
			})
		}
		all.Wait()
		if stats := tr.Stats(); stats.Waits != 0 || stats.Attempts != 4 {
			t.Error(stats)
		}
	})
}

// MaxWait is for what was told; the chance that is added is no part of it.
func TestMaxWaitIsWithoutChance(t *testing.T) {
	inBubble(t, shut("60"), func(s *rig) {
		h, _ := s.client(Options{Random: func() float64 { return 0.9 }})
		s.once(h)
		s.get(h, "http://api.test/")
		if came := s.arrivals(); came[1] != 64500*time.Millisecond {
			t.Error(came)
		}
	})
}

// A retry stands where its request stood: before those who came later.
func TestRetryKeepsItsPlace(t *testing.T) {
	var order []string
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		order = append(order, r.URL.Path)
		shut("5")(n, w, r)
	}, func(s *rig) {
		h, _ := s.client(steady())
		var all sync.WaitGroup
		all.Go(func() { s.get(h, "http://api.test/retry") })
		synctest.Wait()
		for range 20 {
			all.Go(func() { s.get(h, "http://api.test/later") })
		}
		all.Wait()
		if at := slices.Index(order[1:], "/retry"); at < 0 || at > 1 {
			t.Error(order)
		}
	})
}

// Once the gate is open the line moves, though the first answers are slow.
func TestLineMovesWithoutAnswers(t *testing.T) {
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n > 1 {
			time.Sleep(10 * time.Second)
		}
		shut("5")(n, w, r)
	}, func(s *rig) {
		h, _ := s.client(steady())
		s.once(h)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { s.get(h, "http://api.test/") })
		}
		all.Wait()
		s.want(0, 5*time.Second, 5050*time.Millisecond, 5100*time.Millisecond)
	})
}

// Between the time that was told and that at which the gate opens, too, a deadline
// is told at once.
func TestDeadlineWithinTheChance(t *testing.T) {
	inBubble(t, shut("5"), func(s *rig) {
		h, _ := s.client(Options{Random: func() float64 { return 0.9 }})
		s.once(h)
		ctx, cancel := context.WithTimeout(context.Background(), 5200*time.Millisecond)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.test/", nil)
		_, err := h.Do(req)
		var why *RateLimitError
		if !errors.As(err, &why) || why.Reason != ReasonGate || why.RetryAfter != 5*time.Second || time.Since(s.began) > 0 {
			t.Error(err)
		}
	})
}

// What gates what: a host and a port, not another; a partition, not another; the
// host that a redirect led to, not the one that it came from.
func TestGatesAreApart(t *testing.T) {
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/redirect":
			http.Redirect(w, r, "http://other.test/refuse", http.StatusFound)
		case r.URL.Path == "/refuse":
			shut("5")(1, w, r)
		}
	}, func(s *rig) {
		o := steady()
		o.Partition = func(r *http.Request) string { return r.Header.Get("Key") }
		h, _ := s.client(o)
		open := func(url, key string) bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
			req.Header.Set("Key", key)
			resp, err := h.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			return err == nil && resp.StatusCode == 200
		}
		open("http://api.test/refuse", "a")
		open("http://api.test/redirect", "b")
		for _, c := range []struct {
			url, key string
			open     bool
		}{
			{"http://api.test/", "a", false}, {"http://API.test:80/", "a", false}, {"http://api.test./", "a", false},
			{"http://api.test:8080/", "a", true}, {"http://api.test/", "b", true}, {"http://api.test/", "", true},
			{"http://other.test/", "b", false}, {"http://other.test/", "a", true},
		} {
			if open(c.url, c.key) != c.open {
				t.Errorf("%s for %s: open is not %v", c.url, c.key, c.open)
			}
		}
	})
}

// The gate also learns from what is not sent again: a POST, a context that is
// marked, the last attempt.
func TestGateLearnsFromAll(t *testing.T) {
	inBubble(t, shut("5"), func(s *rig) {
		h, _ := s.client(steady())
		resp, err := h.Post("http://api.test/", "text/plain", nil)
		if err != nil || GaveUp(resp).Reason != ReasonUnsafe || GaveUp(resp).RetryAfter != 5*time.Second {
			t.Fatal(err, GaveUp(resp))
		}
		resp.Body.Close()
		s.get(h, "http://api.test/")
		s.want(0, 5*time.Second)
	})
}

// Of hosts that were forgotten nothing is left; a shut gate is never forgotten.
func TestHostsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCaller(Options{})
		do := func(target string, a Answer) {
			c.Do(t.Context(), &Call{Target: target}, func(context.Context, int) Answer { return a })
		}
		for i := range 100 {
			do(strconv.Itoa(-i-1), Answer{Kind: Refused, Told: true, Wait: time.Hour})
		}
		for i := range 3 * maxLines {
			do(strconv.Itoa(i), Answer{})
		}
		if c.lines > maxLines || len(c.hosts) != c.lines {
			t.Error(c.lines, "lines of", len(c.hosts), "hosts are remembered")
		}
		for i := range 100 {
			if c.hosts[strconv.Itoa(-i-1)] == nil {
				t.Fatal("a shut gate was forgotten")
			}
		}
	})
}
