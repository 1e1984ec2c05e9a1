package probe

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
)

// A soundAPI limits as it should: each key that exists by itself, with headers that
// tell the truth, readable for scripts, whatever way it is asked.
type soundAPI struct {
	mu   sync.Mutex
	rule *comporta.Rule
	keys map[string]*replayer
	ways *simServer // how long requests take
}

func newSoundAPI(t *testing.T, l comporta.Limit) *soundAPI {
	rule, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return &soundAPI{rule: rule, keys: map[string]*replayer{"Key12345": newReplayer(rule, 7), "other": newReplayer(rule, 9)}, ways: newSimServer(l, 0, 1, calm, calm)}
}

func (a *soundAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	there, back, _ := a.ways.way(time.Now())
	time.Sleep(there)
	status, h, delay := a.answer(req)
	time.Sleep(back + delay)
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(`{"title":"an answer"}`)), Request: req}, nil
}

func (a *soundAPI) answer(req *http.Request) (status int, h http.Header, delay time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h = http.Header{"Content-Type": {"application/problem+json"}, "Cache-Control": {"no-store"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset")
	key := a.keys[req.Header.Get("X-Api-Key")]
	switch {
	case req.Method == http.MethodOptions:
		return http.StatusNoContent, h, 0
	case req.URL.Path != "/search":
		return http.StatusNotFound, h, 0
	case key == nil:
		return http.StatusUnauthorized, h, 0
	}
	d := key.take(comporta.InstantOf(time.Now()))
	whole := func(d time.Duration) string { return strconv.Itoa(int((d + time.Second - 1) / time.Second)) }
	h.Set("RateLimit-Limit", strconv.FormatInt(d.Limit, 10))
	h.Set("RateLimit-Remaining", strconv.FormatInt(d.Remaining, 10))
	h.Set("RateLimit-Reset", whole(d.ResetAfter))
	if !d.Allowed {
		h.Set("Retry-After", whole(max(d.RetryAfter, time.Second)))
		return http.StatusTooManyRequests, h, 0
	}
	return http.StatusOK, h, d.Delay
}

// What is told of each algorithm, by a server of it that does all well, is a golden
// file: no check finds a fault where there is none.
func TestSoundServers(t *testing.T) {
	for _, algorithm := range comporta.Algorithms() {
		t.Run(algorithm.String(), func(t *testing.T) {
			l := comporta.Limit{Name: "x", Algorithm: algorithm, Limit: 20, Window: 10 * time.Second}
			var r *Report
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(12345 * time.Millisecond)
				a := newSoundAPI(t, l)
				target := Target{Method: "GET", URL: "http://api.test/search", Identities: []http.Header{{"X-Api-Key": {"Key12345"}}, {"X-Api-Key": {"other"}}}}
				var err error
				if r, err = Run(t.Context(), Options{Target: target, Budget: plenty, Sender: NewSender(target, a), Expect: &Contract{Limit: l}}); err != nil {
					t.Fatal(err)
				}
			})
			if r.Failed() || !r.Kept() {
				t.Error("a sound server has faults, or another limit")
			}
			got := stable(r)
			golden := filepath.Join("testdata", "simulated", algorithm.String()+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				var full strings.Builder
				_ = r.WriteText(&full, Screen{Width: 100})
				t.Errorf("(-golden +got):\n%s\n%s", d, &full)
			}
		})
	}
}
