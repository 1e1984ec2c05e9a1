package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAdmitsExactlyTheLimitUnderConcurrentLoad(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_log", "sliding_counter", "token_bucket"} {
		t.Run(algorithm, func(t *testing.T) {
			var reached atomic.Int64
			up := api(t, func(w http.ResponseWriter, r *http.Request) { reached.Add(1); hello(w, r) })
			h := serve(t, up, "limits: [{name: a, per: address, limit: 100/30s, algorithm: "+algorithm+"}]", newClock())
			c := client(t)
			var passed, refused atomic.Int64
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					for range 25 {
						switch s := status(t, c, h.url+"/"); s {
						case http.StatusOK:
							passed.Add(1)
						case http.StatusTooManyRequests:
							refused.Add(1)
						default:
							t.Errorf("status %d", s)
						}
					}
				})
			}
			all.Wait()
			if passed.Load() != 100 || refused.Load() != 300 || reached.Load() != 100 {
				t.Errorf("%d passed, %d refused, %d reached the upstream; want 100, 300, 100", passed.Load(), refused.Load(), reached.Load())
			}
		})
	}
}

// 100 per 30 s; five connections that never rest for 40 s, begun 10 s into a window.
func TestRefusalsDoNotKeepALimitClosed(t *testing.T) {
	for algorithm, want := range map[string]int64{
		"fixed_window": 200, "sliding_log": 200,
		"token_bucket": 233, // 100 + 100/30 × 40
	} {
		t.Run(algorithm, func(t *testing.T) {
			time := newClock()
			time.move(10e9)
			h := serve(t, api(t, hello), "limits: [{name: a, per: address, limit: 100/30s, algorithm: "+algorithm+"}]", time)
			c := client(t)
			var passed atomic.Int64
			for step := 0; step <= 200; step++ {
				var all sync.WaitGroup
				for range 5 {
					all.Go(func() {
						for ask, n := true, 0; ask && n < 100; n++ { // to the first refusal, and once in vain
							ask = status(t, c, h.url+"/") == http.StatusOK
							if ask {
								passed.Add(1)
							}
						}
					})
				}
				all.Wait()
				if step < 200 {
					time.move(200e6)
				}
			}
			if passed.Load() != want {
				t.Errorf("%d passed, want %d", passed.Load(), want)
			}
		})
	}
}

func TestARefusalSaysWhenToComeBack(t *testing.T) {
	clock := newClock()
	h := serve(t, api(t, hello), "limits: [{name: a, per: address, limit: 2/min}, {name: b, per: {header: X-Tenant}, limit: 100/min}]", clock)
	c := client(t)
	res, _ := get(t, c, h.url+"/")
	if got := res.Header.Get("RateLimit-Remaining"); res.StatusCode != 200 || got != "1" {
		t.Errorf("first: status %d, remaining %q", res.StatusCode, got)
	}
	get(t, c, h.url+"/")
	res, text := get(t, c, h.url+"/")
	got := map[string]string{}
	for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After", "Cache-Control", "Content-Type"} {
		got[name] = strings.Join(res.Header.Values(name), "|")
	}
	want := map[string]string{
		"RateLimit-Limit": "2", "RateLimit-Remaining": "0", "RateLimit-Reset": "30", "Retry-After": "30",
		"Cache-Control": "no-store", "Content-Type": "application/problem+json",
	}
	if diff := cmp.Diff(want, got); diff != "" || res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("status %d, headers (-want +got):\n%s", res.StatusCode, diff)
	}
	var problem struct {
		Violated []string `json:"violated-policies"`
	}
	if err := json.Unmarshal([]byte(text), &problem); err != nil || !cmp.Equal(problem.Violated, []string{"a"}) {
		t.Errorf("%v: %s", err, text)
	}
	clock.move(30 * time.Second)
	if s := status(t, c, h.url+"/"); s != http.StatusOK {
		t.Errorf("after Retry-After: %d", s)
	}
}

func TestWhatIsMatchedIsWhatIsForwarded(t *testing.T) {
	var seen atomic.Value
	up := api(t, func(w http.ResponseWriter, r *http.Request) { seen.Store(r.RequestURI); hello(w, r) })
	for _, base := range []string{"", "/base"} {
		h := serve(t, up+base, "limits: [{name: a, match: GET /admin/, per: everyone, limit: 1000/min, show: true}]", newClock())
		c := client(t)
		for _, test := range []struct {
			asked, forwarded string
			matched          bool
		}{
			{"/admin/x", "/admin/x", true},
			{"//admin//x", "/admin/x", true},
			{"/a/../admin/./x?q=a;b&p=%zz", "/admin/x?q=a;b&p=%zz", true},
			{"/%61dmin/x", "/admin/x", true},
			{"/open/a%20b", "/open/a%20b", false},
			{"/open/%e2%82%ac", "/open/%E2%82%AC", false},
		} {
			res := ask(t, c, h.url, test.asked)
			if got := seen.Load(); got != base+test.forwarded {
				t.Errorf("%s%s was forwarded as %v", base, test.asked, got)
			}
			if got := res.Header.Get("RateLimit-Limit") != ""; got != test.matched {
				t.Errorf("%s%s: under the limit: %v", base, test.asked, got)
			}
		}
		seen.Store("")
		for _, asked := range []string{"/admin%2fx", "/admin%5cx", "/admin/%zz", "/admin;a/x"} {
			if res := ask(t, c, h.url, asked); res.StatusCode != http.StatusBadRequest || seen.Load() != "" {
				t.Errorf("%s: status %d, forwarded as %q", asked, res.StatusCode, seen.Load())
			}
		}
	}
}

// ask asks for a target exactly as it is written.
func ask(t *testing.T, c *http.Client, base, target string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.URL.Opaque = target
	if strings.HasPrefix(target, "//") {
		r.URL.Opaque = base + target // else it reads as a host
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", target, err))
	}
	res.Body.Close()
	return res
}
