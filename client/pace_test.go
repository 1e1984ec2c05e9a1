package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
)

// limiter is a limit in a memory of its own, in a bubble.
func limiter(t *testing.T, limit comporta.Limit) *comporta.Limiter {
	t.Helper()
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	l, err := comporta.NewLimiter(store, limit)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// limited is a server that keeps a limit and tells what remains, as the drafts say
// it.
func limited(t *testing.T, l *comporta.Limiter, window int, refused *atomic.Int64) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, r *http.Request) {
		d, err := l.Take(r.Context(), "all", 1)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("RateLimit-Policy", fmt.Sprintf(`"p";q=%d;w=%d`, d.Limit, window))
		w.Header().Set("RateLimit", fmt.Sprintf(`"p";r=%d;t=%d`, d.Remaining, int(math.Ceil(d.ResetAfter.Seconds()))))
		if !d.Allowed {
			refused.Add(1)
			w.Header().Set("Retry-After", fmt.Sprint(int(math.Ceil(d.RetryAfter.Seconds()))))
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}
}

// A program with ten workers against 20 requests in 10 seconds: with a pace it
// slows down before it is refused.
func TestPaceBeforeTheRefusal(t *testing.T) {
	for _, c := range []struct {
		pace  Pace
		least int64 // refusals
		most  int64
	}{{Off, 4, 1000}, {Gentle, 0, 3}, {Strict, 0, 0}} {
		var counted atomic.Int64
		var l *comporta.Limiter
		inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) { limited(t, l, 10, &counted)(n, w, r) }, func(s *rig) {
			l = limiter(s.t, comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 20, Window: 10 * time.Second})
			h, _ := s.client(Options{Pace: c.pace, Budget: Budget{Percent: -1}, Attempts: 10})
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					for range 10 {
						if resp, _ := s.get(h, "http://api.test/"); resp.StatusCode != 200 {
							t.Error(resp.StatusCode)
						}
					}
				})
			}
			all.Wait()
			took, refused := time.Since(s.began), counted.Load()
			t.Logf("pace %d: %d refusals in %v", c.pace, refused, took)
			if refused < c.least || refused > c.most || took < 40*time.Second || took > 80*time.Second {
				t.Errorf("pace %d: %d refusals in %v; want %d to %d, in 40 s and some", c.pace, refused, took, c.least, c.most)
			}
		})
	}
}

// hints is a server of which nothing remains until then, by what it says; it
// answers all the same.
func hints(remaining, reset int) func(int, http.ResponseWriter, *http.Request) {
	return func(n int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit-Policy", `"p";q=100;w=1000`)
		w.Header().Set("RateLimit", fmt.Sprintf(`"p";r=%d;t=%d`, remaining, reset))
	}
}

// What remains is a hint: gently, it never makes a request fail; strictly, a
// request that could not leave in time fails at once.
func TestPaceAndDeadlines(t *testing.T) {
	for _, pace := range []Pace{Gentle, Strict} {
		for _, wait := range []time.Duration{time.Second, 30 * time.Second, 0} {
			inBubble(t, hints(0, 500), func(s *rig) {
				h, tr := s.client(Options{Pace: pace})
				s.get(h, "http://api.test/")
				var all sync.WaitGroup
				for range 20 {
					all.Go(func() {
						ctx := context.Background()
						if wait > 0 {
							with, cancel := context.WithTimeout(ctx, wait)
							defer cancel()
							ctx = with
						}
						req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.test/", nil)
						resp, err := h.Do(req)
						if err == nil {
							resp.Body.Close()
						}
						var why *RateLimitError
						if pace == Gentle && err != nil || pace == Strict && (!errors.As(err, &why) || why.Reason != ReasonLine) {
							t.Errorf("pace %d, until %v: %v", pace, wait, err)
						}
					})
				}
				all.Wait()
				if took := time.Since(s.began); took > 0 || tr.Stats().Waits > 0 {
					t.Errorf("pace %d, until %v: it took %v, %v", pace, wait, took, tr.Stats())
				}
			})
		}
	}
}

// In a line that the gentle pace holds, those whose time runs out go, before others;
// the others keep the pace.
func TestGentleLetsGo(t *testing.T) {
	inBubble(t, hints(10, 1000), func(s *rig) {
		h, _ := s.client(steady())
		s.get(h, "http://api.test/")
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
		var all sync.WaitGroup
		for range 10 { // one a second
			all.Go(func() { get(time.Hour) })
		}
		time.Sleep(500 * time.Millisecond)
		if err := get(3 * time.Second); err != nil || time.Since(s.began) != 500*time.Millisecond {
			t.Error(err, time.Since(s.began))
		}
		all.Wait()
		if took := time.Since(s.began); took < 9*time.Second || took > 12*time.Second {
			t.Error(took, s.arrivals())
		}
	})
}

// The pace that tightens while somebody is in line does not make him fail either,
// though the first in line has the time to wait.
func TestPaceTightensInLine(t *testing.T) {
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n > 1 {
			hints(0, 40)(n, w, r)
			return
		}
		hints(10, 9)(n, w, r)
	}, func(s *rig) {
		h, _ := s.client(steady())
		s.get(h, "http://api.test/")
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				ctx := context.Background()
				if i > 1 {
					with, cancel := context.WithTimeout(ctx, 20*time.Second)
					defer cancel()
					ctx = with
				}
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.test/", nil)
				resp, err := h.Do(req)
				if err != nil {
					t.Error(i, err)
					return
				}
				resp.Body.Close()
			})
		}
		all.Wait()
		if came := s.arrivals(); came[9] > 20*time.Second || came[10] < 40*time.Second {
			t.Error(came)
		}
	})
}

// A gate and a pace together: what the server told is waited for, what remains is
// not, where there is no time.
func TestGateAndPace(t *testing.T) {
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		hints(0, 500)(n, w, r)
		shut("2")(n, w, r)
	}, func(s *rig) {
		h, _ := s.client(steady())
		s.once(h)
		h.Timeout = 10 * time.Second
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { s.get(h, "http://api.test/") })
		}
		all.Wait()
		came := s.arrivals()
		for i := 1; i < len(came); i++ {
			if came[i] < 2*time.Second || came[i] > 3*time.Second || i > 1 && came[i]-came[i-1] < 45*time.Millisecond {
				t.Error(came)
			}
		}
	})
}

// What a server that was never heard gets at once is bounded.
func TestFirstRequests(t *testing.T) {
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		time.Sleep(100 * time.Millisecond)
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusTooManyRequests)
	}, func(s *rig) {
		h, _ := s.client(Options{})
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.test/", nil)
				if resp, err := h.Do(req); err == nil {
					resp.Body.Close()
				}
			})
		}
		all.Wait()
		if came := s.arrivals(); len(came) != 16 || time.Since(s.began) > time.Second {
			t.Error(len(came), time.Since(s.began))
		}
	})
}

// Where more than 10 minutes are told by hints alone, one request sees whether
// that is so.
func TestHostileHint(t *testing.T) {
	inBubble(t, hints(0, 1_000_000), func(s *rig) {
		h, _ := s.client(Options{MaxWait: time.Hour})
		s.get(h, "http://api.test/")
		s.get(h, "http://api.test/")
		s.want(0, 10*time.Minute)
	})
}
