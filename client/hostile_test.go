package client

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// What waits behind a gate leaves one by one, whichever status shut it.
func TestNoHerdBehindAnOverload(t *testing.T) {
	for _, status := range []int{429, 503, 529} {
		inBubble(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				w.Header().Set("Retry-After", "5")
				w.WriteHeader(status)
			}
		}, func(s *rig) {
			h, _ := s.client(steady())
			var all sync.WaitGroup
			all.Go(func() { s.get(h, "http://api.test/") })
			time.Sleep(time.Second)
			for range 50 {
				all.Go(func() { s.get(h, "http://api.test/") })
			}
			all.Wait()
			came := s.arrivals()
			slices.Sort(came)
			if came[1] < 5*time.Second || came[11]-came[1] < 300*time.Millisecond || came[50] > 10*time.Second {
				t.Error(status, came)
			}
		})
	}
}

// What the program itself hands in may panic: it gets its panic, and nothing is left
// behind, nor locked.
func TestPanics(t *testing.T) {
	inBubble(t, tell(1, retryIn("5")), func(s *rig) {
		o := steady()
		var armed atomic.Bool
		o.Observe = func(e Event) {
			if armed.Load() && e.What == Wait {
				panic("hook")
			}
		}
		lost := func(h *http.Client, url string) (with any) {
			defer func() { with = recover() }()
			h.Get(url)
			return nil
		}
		h, tr := s.client(o)
		for range 20 {
			go s.get(h, "http://api.test/")
		}
		time.Sleep(time.Second)
		armed.Store(true)
		if with := lost(h, "http://api.test/"); with != "hook" {
			t.Error(with)
		}
		armed.Store(false)
		time.Sleep(time.Minute)
		if stats := tr.Stats(); stats.Waiting != 0 || len(s.arrivals()) != 21 || tr.hosts["api.test"].lines[""].users != 0 {
			t.Error(stats, s.arrivals())
		}
		o.Limit = outbound(func(int) (comporta.Decision, error) { panic("limit") }).limit()
		h, tr = s.client(o)
		if with := lost(h, "http://api.test/"); with != "limit" || tr.Stats().Waiting != 0 {
			t.Error(with, tr.Stats())
		}
	})
}

// Whoever would wait for ever waits as told, and overflows nothing.
func TestMaxWaitForEver(t *testing.T) {
	o := Options{MaxWait: comporta.Never, Backoff: Backoff{Base: comporta.Never, Cap: comporta.Never}}
	inBubble(t, tell(1, retryIn("99999999999999999999")), func(s *rig) {
		h, _ := s.client(o)
		resp, _ := s.get(h, "http://api.test/")
		if why := GaveUp(resp); why == nil || why.Reason != ReasonTooLong || why.RetryAfter != comporta.Never {
			t.Error(why)
		}
		s.want(0)
	})
	const month = 30 * 24 * time.Hour
	inBubble(t, tell(1, retryIn("2592000")), func(s *rig) {
		h, _ := s.client(Options{MaxWait: comporta.Never})
		go s.get(h, "http://api.test/")
		time.Sleep(time.Second)
		s.get(h, "http://api.test/")
		time.Sleep(time.Hour)
		if came := s.arrivals(); len(came) != 3 || came[1] < month || came[2] <= came[1] {
			t.Error(came)
		}
	})
}

// A Transport sends nothing again that one within it did not even send.
func TestDeclinedWithin(t *testing.T) {
	inBubble(t, tell(1, retryIn("600")), func(s *rig) {
		_, within := s.client(steady())
		h, _ := s.client(Options{Transport: within})
		if resp, _ := s.get(h, "http://api.test/"); GaveUp(resp).Reason != ReasonTooLong {
			t.Error(GaveUp(resp))
		}
		h, tr := s.client(Options{Transport: within}) // which has not heard of the gate
		_, err := h.Get("http://api.test/")
		var why *RateLimitError
		if !errors.As(err, &why) || why.Reason != ReasonGate || why.RetryAfter != 10*time.Minute || time.Since(s.began) > 0 {
			t.Errorf("%v after %v", err, time.Since(s.began))
		}
		if stats := tr.Stats(); stats.Attempts != 1 || stats.Failed != 0 || within.Stats().Declined[ReasonGate] != 1 {
			t.Error(stats, within.Stats())
		}
	})
}

// A GetBody that gives nothing where there was something sends nothing again.
func TestGetBodyGivesNothing(t *testing.T) {
	for _, instead := range []io.ReadCloser{nil, http.NoBody} {
		var sent []string
		o := steady()
		o.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			b, _ := io.ReadAll(r.Body)
			r.Body.Close()
			sent = append(sent, string(b))
			return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
		})
		req, _ := http.NewRequest("PUT", "http://api.test/", strings.NewReader("all of it"))
		req.GetBody = func() (io.ReadCloser, error) { return instead, nil }
		resp, err := New(o).RoundTrip(req)
		if err != nil || !slices.Equal(sent, []string{"all of it"}) || GaveUp(resp).Reason != ReasonUnsafe {
			t.Errorf("%q, %v, %v", sent, err, GaveUp(resp))
		}
	}
}

// A refusal whose header tells too long a time comes back at once, and each with all
// of its body, however slowly that comes.
func TestSlowLastWord(t *testing.T) {
	for _, c := range []struct {
		method, after   string
		status          int
		limit, atLatest time.Duration
		reason          Reason
	}{
		{"GET", "600", 429, 0, 0, ReasonTooLong},
		{"GET", "50", 429, 40 * time.Second, 0, ReasonDeadline},
		{"POST", "5", 429, 0, time.Second, ReasonUnsafe},
		{"POST", "", 500, 0, time.Second, ReasonUnsafe},
	} {
		inBubble(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", c.after)
			w.WriteHeader(c.status)
			for _, part := range []string{`{"a":`, `[1`, `,2`, `,3]}`} {
				io.WriteString(w, part)
				w.(http.Flusher).Flush()
				time.Sleep(700 * time.Millisecond)
			}
		}, func(s *rig) {
			h, _ := s.client(steady())
			h.Timeout = c.limit
			req, _ := http.NewRequest(c.method, "http://api.test/", nil)
			resp, err := h.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			took, why := time.Since(s.began), GaveUp(resp)
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if took > c.atLatest || why == nil || why.Reason != c.reason || string(body) != `{"a":[1,2,3]}` || err != nil {
				t.Errorf("%s %d: %v after %v, %q, %v", c.method, c.status, why, took, body, err)
			}
		})
	}
}

// A slow refusal that nobody reads to its end leaves nothing behind.
func TestSlowLastWordClosed(t *testing.T) {
	inBubble(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}, func(s *rig) {
		h, _ := s.client(steady())
		resp, err := h.Post("http://api.test/", "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	})
}

// A leap second is legal (RFC 9110, section 5.6.7).
func TestLeapSeconds(t *testing.T) {
	for _, after := range []string{"Sat, 31 Dec 2016 23:59:60 GMT", "Saturday, 31-Dec-16 23:59:60 GMT", "Sat Dec 31 23:59:60 2016"} {
		wait, told := RetryAfter(respond("Retry-After:"+after, "Date:Sat, 31 Dec 2016 23:59:57 GMT"), received)
		if wait != 3*time.Second || !told {
			t.Error(after, wait, told)
		}
	}
	if wait, told := RetryAfter(respond("Retry-After:Sun, 01 Jan 2017 00:00:05 GMT", "Date:Sat, 31 Dec 2016 23:59:60 GMT"), received); wait != 5*time.Second || !told {
		t.Error(wait, told)
	}
	if wait, told := RetryAfter(respond("Retry-After:Sun, 01 Jan 2017 00:59:60:59:60 GMT"), received); told {
		t.Error(wait)
	}
}

// What goes through a tunnel is no body of which the server could be asked first: net/http
// would wait for its word, and send nothing where the connection is to be closed.
func TestTunnelsDoNotAsk(t *testing.T) {
	for _, upgrade := range []string{"", "websocket"} {
		var expect string
		tr := New(Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			expect = r.Header.Get("Expect")
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})})
		req, _ := http.NewRequest("CONNECT", "http://api.test/", io.MultiReader())
		req.ContentLength = -1
		if upgrade != "" {
			req.Method = "POST"
			req.Header.Set("Upgrade", upgrade)
		}
		if _, err := tr.RoundTrip(req); err != nil || expect != "" {
			t.Error(req.Method, expect, err)
		}
	}
}

// A key of nothing is no key.
func TestBlankKeys(t *testing.T) {
	for key, want := range map[string]bool{"": false, " ": false, "\t": false, "7": true} {
		for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
			if req := (&http.Request{Method: "POST", Header: http.Header{name: {key}}}); repeatable(req) != want {
				t.Errorf("%s: %q", name, key)
			}
		}
	}
}

// What net/http itself has queued for a connection respects the gate that was shut
// since: it waits, leaves spaced, or fails at once, unsent.
func TestGateHoldsWhatIsQueuedBelow(t *testing.T) {
	for _, c := range []struct {
		after string
		limit time.Duration
		wait  time.Duration
	}{{"5", 0, 5 * time.Second}, {"600", 0, 0}, {"30", 20 * time.Second, 0}} {
		inBubble(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			time.Sleep(100 * time.Millisecond)
			if n == 20 {
				w.Header().Set("Retry-After", c.after)
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}, func(s *rig) {
			s.wire.MaxConnsPerHost = 2
			h, tr := s.client(steady())
			h.Timeout = c.limit
			var all sync.WaitGroup
			var declined, ended atomic.Int64
			for range 200 {
				all.Go(func() {
					resp, err := h.Post("http://api.test/", "text/plain", strings.NewReader("x"))
					var why *RateLimitError
					switch {
					case err == nil:
						resp.Body.Close()
					case errors.As(err, &why) && why.Reason == ReasonGate && why.Attempts == 0 && why.RetryAfter > 0:
						declined.Add(1)
						ended.Store(int64(time.Since(s.began)))
					default:
						t.Error(err)
					}
				})
			}
			all.Wait()
			came := s.arrivals()
			slices.Sort(came)
			const shut = time.Second
			early, together := 0, 0
			for i, at := range came {
				if at > shut && at < shut+c.wait {
					early++
				}
				if i > 0 && at > shut && at < shut+c.wait+time.Second && at-came[i-1] < 20*time.Millisecond {
					together++
				}
			}
			if early > 0 || together > 0 || c.wait > 0 && len(came) != 200 {
				t.Errorf("%s: of %d, %d came early, %d together: %v", c.after, len(came), early, together, came)
			}
			if c.wait == 0 && (int(declined.Load())+len(came) != 200 || len(came) > 22 || time.Duration(ended.Load()) > shut+200*time.Millisecond) {
				t.Errorf("%s: %d came, %d were declined, the last after %v", c.after, len(came), declined.Load(), time.Duration(ended.Load()))
			}
			if stats := tr.Stats(); stats.Declined[ReasonGate] != uint64(declined.Load()) || tr.hosts["api.test"].lines[""].users != 0 {
				t.Error(stats)
			}
		})
	}
}

// Dates that are nearly HTTP's, as libraries for cookies, mails and logs print them.
func TestDatesOfOtherUses(t *testing.T) {
	for _, after := range []string{
		"Tue, 01-Dec-2026 12:00:03 GMT", "Tue, 01 Dec 2026 12:00:03", "01 Dec 2026 12:00:03 GMT", "Tue Dec  1 12:00:03 UTC 2026",
		"tue, 01 dec 2026 12:00:03 gmt", "2026-12-01t12:00:03z",
	} {
		if wait, told := RetryAfter(respond("Retry-After:"+after), received); wait != 3*time.Second || !told {
			t.Error(after, wait, told)
		}
	}
	for _, after := range []string{"Tue Dec  1 12:00:03 PST 2026", "Tue, 01-Dec-2026 12:00:03 XYZ", "32 Dec 2026 12:00:03 GMT", "Tue, 01 Dec"} {
		if wait, told := RetryAfter(respond("Retry-After:"+after), received); told {
			t.Error(after, wait)
		}
	}
}
