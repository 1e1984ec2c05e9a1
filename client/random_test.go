package client

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
)

// Whatever a server does and whenever callers give up: none starts before a time
// that was told, none is late, none is sent too often, and nothing is left behind.
func TestManyWays(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, seed: seed, dice: rand.New(rand.NewPCG(seed, 1)), attempts: map[string]int{}}
			w.play()
		})
		if t.Failed() {
			return
		}
	}
}

// A world is a server of chance.
type world struct {
	t    *testing.T
	seed uint64

	mu       sync.Mutex
	dice     *rand.Rand
	told     []gate
	attempts map[string]int
	retries  int
}

// A gate is a time that was told, and when.
type gate struct{ from, until time.Time }

func (w *world) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.IntN(n)
}

func (w *world) play() {
	began := time.Now()
	o := Options{
		Transport: w, Pace: Pace(w.roll(3)), RetryRefused: w.roll(2) == 0, MaxWaiters: 5 + w.roll(100), MaxWait: time.Duration(1+w.roll(20)) * time.Second,
		Backoff: Backoff{Jitter: Jitter(w.roll(5))}, Random: func() float64 { return float64(w.roll(1000)) / 1000 },
	}
	if w.roll(3) == 0 {
		o.Adaptive = 2
	}
	if w.roll(3) == 0 {
		o.Limit = outbound(func(n int) (d comporta.Decision, err error) {
			d.Allowed, d.RetryAfter, d.Delay = w.roll(2) == 0, time.Duration(w.roll(3000))*time.Millisecond, time.Duration(w.roll(2)*w.roll(500))*time.Millisecond
			return d, nil
		}).limit()
	}
	tr := New(o)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			time.Sleep(time.Duration(w.roll(20_000)) * time.Millisecond)
			timeout := time.Duration(1+w.roll(60_000)) * time.Millisecond
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			if w.roll(4) == 0 {
				time.AfterFunc(time.Duration(w.roll(5000))*time.Millisecond, cancel)
			}
			method := []string{"GET", "POST"}[w.roll(2)]
			req, _ := http.NewRequestWithContext(ctx, method, "http://api.test/", strings.NewReader("body"))
			req.Header.Set("Call", fmt.Sprint(i))
			start := time.Now()
			resp, err := tr.RoundTrip(req)
			// A body of a refusal may be read for a second, by a clock that is not the context's.
			if late := time.Since(start) - timeout; late > time.Second {
				w.t.Errorf("seed %d: a call ends %v after its deadline: %v", w.seed, late, err)
			}
			if err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	all.Wait()
	synctest.Wait()
	stats := tr.Stats()
	l := tr.hosts["api.test"].lines[""]
	if stats.Waiting != 0 || l.users != 0 || len(l.waiters)+len(l.resting) != 0 || !l.lane.Idle(time.Now().Add(48*time.Hour)) {
		w.t.Errorf("seed %d: something is left: %+v", w.seed, stats)
	}
	for call, n := range w.attempts {
		if n > 3 {
			w.t.Errorf("seed %d: call %s was sent %d times", w.seed, call, n)
		}
	}
	if most := 10 + 10 + int(time.Since(began)/time.Second) + 1; w.retries > most || int(stats.Retries) != w.retries {
		w.t.Errorf("seed %d: %d retries, at most %d; %+v", w.seed, w.retries, most, stats)
	}
}

func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(req.Body)
	req.Body.Close()
	call := req.Header.Get("Call")
	w.mu.Lock()
	start := time.Now()
	if w.attempts[call]++; w.attempts[call] > 1 {
		w.retries++
	}
	for _, g := range w.told {
		if start.After(g.from) && start.Before(g.until) {
			w.t.Errorf("seed %d: sent %v before the time that was told", w.seed, g.until.Sub(start))
		}
	}
	w.mu.Unlock()
	if string(body) != "body" {
		w.t.Errorf("seed %d: sent %q", w.seed, body)
	}
	select {
	case <-time.After(time.Duration(w.roll(2000)) * time.Millisecond):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("well"))}
	switch w.roll(8) {
	case 0:
		return nil, io.ErrUnexpectedEOF
	case 1:
		resp.StatusCode = 503
	case 2:
		resp.StatusCode = 429
	case 3, 4:
		wait := 1 + w.roll(10)
		resp.StatusCode = []int{429, 503}[w.roll(2)]
		resp.Header.Set("Retry-After", fmt.Sprint(wait))
		now := time.Now()
		w.mu.Lock()
		w.told = append(w.told, gate{now, now.Add(time.Duration(wait) * time.Second)})
		w.mu.Unlock()
	default:
		resp.Header.Set("RateLimit", fmt.Sprintf(`"p";r=%d;t=%d`, w.roll(20), w.roll(30)))
	}
	return resp, nil
}
