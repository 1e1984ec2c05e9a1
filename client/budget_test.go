package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
)

// A server that fails always: retries are a tenth of what is sent anyway, beyond
// the reserve and one a second; those of one host are not paid by another.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		name    string
		budget  Budget
		percent float64
		reserve int
	}{
		{"a tenth", Budget{}, 10, 10},
		{"a fifth", Budget{Percent: 20, Reserve: 50}, 20, 50},
	} {
		for _, workers := range []int{1, 50} {
			inBubble(t, func(_ int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, func(s *rig) {
				h, tr := s.client(Options{Budget: c.budget, Backoff: Backoff{Base: 10 * time.Millisecond}})
				var all sync.WaitGroup
				for range workers {
					all.Go(func() {
						for range 1000 / workers {
							s.get(h, "http://api.test/")
						}
					})
				}
				all.Wait()
				stats := tr.Stats()
				most := uint64(1000*c.percent/100) + uint64(c.reserve) + uint64(time.Since(s.began)/time.Second) + 1
				if stats.Attempts != 1000+stats.Retries || stats.Retries > most || stats.Retries < most*8/10 || stats.Abandoned[ReasonBudget] == 0 {
					t.Errorf("%s, %d workers: %d retries of 1000 in %v, at most %d; %v", c.name, workers, stats.Retries, time.Since(s.began), most, stats.Abandoned)
				}
				resp, _ := s.get(h, "http://other.test/")
				if why := GaveUp(resp); why.Reason != ReasonAttempts || why.Attempts != 3 {
					t.Errorf("%s: of another host: %v", c.name, why)
				}
			})
		}
	}
}

// Without a budget all attempts are made.
func TestNoBudget(t *testing.T) {
	inBubble(t, func(_ int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, func(s *rig) {
		h, tr := s.client(Options{Budget: Budget{Percent: -1}, Backoff: Backoff{Base: time.Millisecond}})
		for range 100 {
			s.get(h, "http://api.test/")
		}
		if stats := tr.Stats(); stats.Attempts != 300 || stats.Overloaded != 300 {
			t.Error(stats)
		}
	})
}

// Adaptive throttling sends less and less to a server that accepts nothing, but
// always some, so that it sees when the server is well again.
func TestAdaptive(t *testing.T) {
	well := false
	inBubble(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if !well {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}, func(s *rig) {
		random := rand.New(rand.NewPCG(1, 2))
		h, tr := s.client(Options{Adaptive: 2, Attempts: 1, Random: random.Float64})
		declined := func(n int) (declined int) {
			for range n {
				time.Sleep(100 * time.Millisecond)
				resp, err := h.Get("http://api.test/")
				var why *RateLimitError
				switch {
				case err == nil:
					resp.Body.Close()
				case errors.As(err, &why) && why.Reason == ReasonThrottle && why.Attempts == 0:
					declined++
				default:
					t.Error(err)
				}
			}
			return declined
		}
		if n := declined(1000); n < 800 || n > 950 || tr.Stats().Declined[ReasonThrottle] != uint64(n) {
			t.Error(n, "of 1000 were declined")
		}
		well = true
		declined(3000) // five minutes
		if n := declined(1000); n > 0 {
			t.Error(n, "of 1000 are declined by a server that is well")
		}
	})
}

// An outbound is a limit that answers as a test wants.
type outbound func(n int) (comporta.Decision, error)

func (o outbound) limit() Outbound { return &asked{answer: o} }

type asked struct {
	mu     sync.Mutex
	n      int
	answer outbound
	who    []string
	costs  []int64
}

func (a *asked) Take(_ context.Context, identity string, cost int64) (comporta.Decision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	a.who, a.costs = append(a.who, identity), append(a.costs, cost)
	return a.answer(a.n)
}

// The outbound limit's answers: what is denied waits or is declined, what is
// delayed waits, what cannot be asked is not sent.
func TestOutbound(t *testing.T) {
	down := errors.New("the store is down")
	for _, c := range []struct {
		name    string
		answer  outbound
		sent    time.Duration
		asked   int
		reason  Reason
		told    time.Duration
		failure error
	}{
		{"allowed", func(int) (comporta.Decision, error) { return comporta.Decision{Allowed: true}, nil }, 0, 1, "", 0, nil},
		{"delayed", func(int) (comporta.Decision, error) {
			return comporta.Decision{Allowed: true, Delay: 3 * time.Second}, nil
		}, 3 * time.Second, 1, "", 0, nil},
		{"delayed too long", func(int) (comporta.Decision, error) {
			return comporta.Decision{Allowed: true, Delay: 90 * time.Second}, nil
		}, -1, 1, ReasonLimit, 90 * time.Second, nil},
		{"denied, then allowed", func(n int) (comporta.Decision, error) {
			return comporta.Decision{Allowed: n > 2, RetryAfter: 2 * time.Second}, nil
		}, 4 * time.Second, 3, "", 0, nil},
		{"denied for long", func(int) (comporta.Decision, error) { return comporta.Decision{RetryAfter: 61 * time.Second}, nil }, -1, 1, ReasonLimit, 61 * time.Second, nil},
		{"denied for ever", func(int) (comporta.Decision, error) { return comporta.Decision{RetryAfter: comporta.Never}, nil }, -1, 1, ReasonLimit, comporta.Never, nil},
		{"denied, and not said how long", func(n int) (comporta.Decision, error) { return comporta.Decision{Allowed: n > 10}, nil }, 10 * time.Millisecond, 11, "", 0, nil},
		{"not to be asked", func(int) (comporta.Decision, error) { return comporta.Decision{}, down }, -1, 1, ReasonLimit, 0, down},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, tell(0, nil), func(s *rig) {
				limit := c.answer.limit().(*asked)
				o := steady()
				o.Limit = limit
				o.Account = func(*http.Request) (string, int64) { return "me", 7 }
				h, _ := s.client(o)
				resp, err := h.Get("http://api.test/")
				if err == nil {
					resp.Body.Close()
				}
				if limit.n != c.asked || limit.who[0] != "me" || limit.costs[0] != 7 {
					t.Errorf("asked %d times, for %v, %v; want %d", limit.n, limit.who, limit.costs, c.asked)
				}
				if c.sent >= 0 {
					s.want(c.sent)
					return
				}
				s.want()
				var why *RateLimitError
				if !errors.As(err, &why) || why.Reason != c.reason || why.RetryAfter != c.told || c.failure != nil && !errors.Is(err, c.failure) || time.Since(s.began) > 0 {
					t.Errorf("%v at %v", err, time.Since(s.began))
				}
			})
		})
	}
}

// Who stands behind one that the outbound limit holds for too long is told so too.
func TestBehindTheOutbound(t *testing.T) {
	inBubble(t, tell(0, nil), func(s *rig) {
		o := steady()
		o.MaxWait = 10 * time.Second
		o.Limit = outbound(func(int) (comporta.Decision, error) {
			return comporta.Decision{RetryAfter: 3 * time.Second}, nil
		}).limit()
		h, tr := s.client(o)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				_, err := h.Get("http://api.test/")
				var why *RateLimitError
				if !errors.As(err, &why) || why.Reason != ReasonLimit {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.test/", nil)
		_, err := h.Do(req)
		var why *RateLimitError
		if !errors.As(err, &why) || why.Reason != ReasonLimit || why.RetryAfter != 2*time.Second || time.Since(s.began) != time.Second {
			t.Error(err, time.Since(s.began))
		}
		all.Wait()
		if time.Since(s.began) > 11*time.Second || tr.Stats().Waiting != 0 {
			t.Error(time.Since(s.began), tr.Stats())
		}
	})
}

// Two callers that share a limit in one store keep it together.
func TestSharedOutbound(t *testing.T) {
	inBubble(t, tell(0, nil), func(s *rig) {
		l := limiter(s.t, comporta.Limit{Limit: 10, Window: time.Second, Burst: 1})
		var all sync.WaitGroup
		for range 2 {
			h, _ := s.client(Options{Limit: l})
			for range 50 {
				all.Go(func() { s.get(h, "http://api.test/") })
			}
		}
		all.Wait()
		came := s.arrivals()
		for i := 10; i < len(came); i++ {
			if came[i]-came[i-10] < time.Second-time.Millisecond {
				t.Fatalf("11 in %v: %v", came[i]-came[i-10], came)
			}
		}
		if len(came) != 100 || came[99] > 11*time.Second {
			t.Error(len(came), came[99])
		}
	})
}

// A transport around another does not multiply attempts, nor does one whose caller
// says that it retries itself.
func TestOnlyOneRetries(t *testing.T) {
	inBubble(t, func(_ int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, func(s *rig) {
		o := steady()
		o.AttemptHeader = "X-Retry-Attempt"
		_, inner := s.client(o)
		o.Transport = inner
		h, _ := s.client(o)
		s.get(h, "http://api.test/")
		s.want(0, 500*time.Millisecond, 1500*time.Millisecond)

		for _, mark := range []func(*http.Request) *http.Request{
			func(r *http.Request) *http.Request { return r.WithContext(NoRetry(r.Context())) },
			func(r *http.Request) *http.Request { r.Header.Set("X-Retry-Attempt", "2"); return r },
		} {
			req, _ := http.NewRequest("GET", "http://other.test/", nil)
			resp, err := h.Do(mark(req))
			if err != nil || GaveUp(resp).Attempts != 1 || GaveUp(resp).Reason != ReasonUnsafe {
				t.Error(err, GaveUp(resp))
			}
			resp.Body.Close()
		}
	})
}

// What the hook is told of, in order, and without a lock held.
func TestEvents(t *testing.T) {
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-RateLimit-Limit", "100")
		w.Header().Set("X-RateLimit-Remaining", "99")
		w.Header().Set("X-RateLimit-Reset", "1")
		tell(1, retryIn("2"))(n, w, r)
	}, func(s *rig) {
		var events []Event
		o := steady()
		var tr *Transport
		o.Observe = func(e Event) { tr.Stats(); events = append(events, e) }
		o.Partition = func(*http.Request) string { return "p" }
		h, tr2 := s.client(o)
		tr = tr2
		s.get(h, "http://api.test/")
		resp, _ := h.Post("http://api.test/", "", nil)
		resp.Body.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.test/", nil)
		h.Do(req)
		want := []Event{
			{What: Attempt, Attempt: 1, Status: 429}, {What: Learnt, Attempt: 1}, {What: GateShut, Attempt: 1, Wait: 2 * time.Second},
			{What: Wait, Attempt: 1, Wait: 2 * time.Second}, {What: Attempt, Attempt: 2, Status: 200}, {What: Learnt, Attempt: 2},
			{What: Wait, Wait: 50*time.Millisecond - 2381*time.Microsecond}, {What: Attempt, Attempt: 1, Status: 200}, {What: Learnt, Attempt: 1},
		}
		for i := range want {
			want[i].Host, want[i].Partition = "api.test", "p"
		}
		for i := range events {
			if events[i].What == Wait {
				events[i].Wait = events[i].Wait.Round(time.Microsecond)
			}
		}
		if !slices.Equal(events, want) {
			t.Errorf("told of\n%v; want\n%v", events, want)
		}
	})
}

// A context that ends comes back as such, in line, between attempts and in one.
func TestContextsEnd(t *testing.T) {
	why := errors.New("the user left")
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}, func(s *rig) {
		h, tr := s.client(Options{Backoff: Backoff{Base: 10 * time.Second, Jitter: NoJitter}})
		for _, path := range []string{"slow", "retry"} {
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(time.Second, func() { cancel(why) })
			req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.test/"+path, nil)
			_, err := tr.RoundTrip(req)
			if want := context.Canceled; path == "retry" && !errors.Is(err, want) || path == "slow" && !errors.Is(err, why) && !errors.Is(err, want) {
				t.Error(path, err)
			}
		}
		if stats := tr.Stats(); stats.Failed != 0 || len(stats.Abandoned) != 0 {
			t.Error(stats)
		}
		h.Timeout = time.Second
		_, err := h.Get("http://api.test/slow")
		var timeout interface{ Timeout() bool }
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Error(err)
		}
	})
}

// Nothing is left behind when a program stops using it.
func TestNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := New(Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody}, nil
		})})
		req, _ := http.NewRequest("GET", "http://api.test/", nil)
		for range 10 {
			tr.RoundTrip(req)
		}
		if l := tr.hosts["api.test"].lines[""]; l.users != 0 || len(l.waiters) != 0 {
			t.Error(l)
		}
	})
}
