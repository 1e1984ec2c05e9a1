package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// next is another policy for a house, on its store.
func (h *house) next(t *testing.T, store *memstore.Store, clock *clock, upstream, file string) InForce {
	t.Helper()
	cfg, err := config.Parse("policy.yaml", fmt.Appendf(nil, "server: {upstream: %q}\n%s", upstream, file))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Server.Listen, cfg.Server.Metrics = "127.0.0.1:0", "127.0.0.1:0"
	if err := cfg.LoadSecret(); err != nil {
		t.Fatal(err)
	}
	o := policy.Options{Before: h.InForce().Engine}
	if clock != nil {
		o.Now = clock.now
	}
	engine, err := policy.NewEngine(cfg.Policy, store, o)
	if err != nil {
		t.Fatal(err)
	}
	return InForce{Server: cfg.Server, Engine: engine, Hash: "hash"}
}

// Under load, a thousand reloads with other numbers each: nobody is answered with
// anything but 200 and 429, no more passes than the last and largest limit's bound,
// and nothing grows. (Numbers that fall forgive what was used over the new budget:
// who lowers and raises a limit again and again gives units away.)
func TestAThousandReloadsUnderLoad(t *testing.T) {
	up := api(t, hello)
	at := newClock()
	const first = "limits:\n  - {name: a, per: everyone, limit: 101/h}\n  - {name: b, per: address, limit: 1000000/s}\n"
	h := serve(t, up, first, at)
	store := h.store
	stop := make(chan struct{})
	var passed, refused atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		c := client(t)
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				res, err := c.Get(h.url + "/")
				if err != nil {
					t.Errorf("a request was lost: %v", err)
					return
				}
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				switch {
				case err != nil:
					t.Errorf("an answer was cut: %v", err)
				case res.StatusCode == http.StatusOK:
					passed.Add(1)
				case res.StatusCode == http.StatusTooManyRequests:
					refused.Add(1)
				default:
					t.Errorf("status %d", res.StatusCode)
				}
			}
		})
	}
	before := grown()
	for i := range 1000 {
		file := fmt.Sprintf("limits:\n  - {name: a, per: everyone, limit: %d/h}\n  - {name: b, per: address, limit: 1000000/s}\n  - {name: c%d, per: address, limit: %d/s}\n",
			101+i/5, i, 1_000_000+i)
		restart, err := h.Replace(h.next(t, store, at, up, file))
		if err != nil || len(restart) > 0 {
			t.Fatal(restart, err)
		}
		if i%100 == 99 {
			at.move(2 * time.Second) // full keys are dropped a second later
			store.Sweep()
		}
	}
	after := grown()
	close(stop)
	all.Wait()
	// 300 at once, and what a limit of 300/h grows by in the 20 s that passed.
	if n := passed.Load(); n == 0 || n > 300+2 {
		t.Errorf("%d passed (%d refused): the larger limit is 300 an hour", n, refused.Load())
	}
	if after.goroutines > before.goroutines+20 {
		t.Errorf("goroutines: %d, then %d", before.goroutines, after.goroutines)
	}
	if after.heap > before.heap+16<<20 {
		t.Errorf("heap: %d MB, then %d MB", before.heap>>20, after.heap>>20)
	}
	_, metrics := get(t, client(t), h.metrics+"/metrics")
	if n := strings.Count(metrics, `decision="allowed",limit=`); n > 7 { // a, b, c, their outer ones, preflight
		t.Errorf("%d limits are counted:\n%s", n, metrics)
	}
	if !strings.Contains(metrics, `comporta_config_info{hash="hash"} 1`) {
		t.Error("the metrics do not name what is in force")
	}
}

type growth struct {
	goroutines int
	heap       uint64
}

func grown() growth {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return growth{runtime.NumGoroutine(), m.HeapAlloc}
}

// A request in flight ends on what it began with, upstream included; the next goes
// to the new one.
func TestARequestEndsByWhatItBeganWith(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	old := api(t, func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-goOn
		_, _ = io.WriteString(w, "old\n")
	})
	h := serve(t, old, generous, nil)
	var all sync.WaitGroup
	all.Go(func() {
		if res, text := get(t, client(t), h.url+"/"); res.StatusCode != 200 || text != "old\n" {
			t.Errorf("the request in flight: %d %q", res.StatusCode, text)
		}
	})
	<-begun
	if _, err := h.Replace(h.next(t, h.store, nil, api(t, hello), generous)); err != nil {
		t.Fatal(err)
	}
	if _, text := get(t, client(t), h.url+"/"); text != "hello\n" {
		t.Errorf("the next request: %q", text)
	}
	close(goOn)
	all.Wait()
}

func TestWhatCannotBeReplaced(t *testing.T) {
	up := api(t, hello)
	h := serve(t, up, generous, nil)
	next := h.next(t, h.store, nil, up, generous)
	next.Server.Listen, next.Server.Metrics = "127.0.0.1:1", ""
	next.Server.TLS = &config.TLS{Cert: "a", Key: "b"}
	next.Server.Timeouts.Idle++
	next.Server.Timeouts.Dial++ // this can
	restart, err := h.Replace(next)
	if want := "[server.listen server.metrics server.tls server.timeouts.idle]"; err != nil || fmt.Sprint(restart) != want {
		t.Errorf("%v, %v; want %s", restart, err, want)
	}
	if again, err := h.Replace(h.InForce()); err != nil || len(again) > 0 {
		t.Errorf("what is in force was not kept: %v, %v", again, err)
	}

	next = h.next(t, h.store, nil, up, generous)
	next.Server.Upstream = &url.URL{Scheme: "http", Host: h.Addr().String()}
	if _, err := h.Replace(next); err == nil || !strings.Contains(err.Error(), "is the gateway itself") {
		t.Errorf("its own upstream: %v", err)
	}
	if _, text := get(t, client(t), h.url+"/"); text != "hello\n" {
		t.Errorf("after a mistake: %q", text)
	}
}

func TestTroubleIsToldUntilItIsOver(t *testing.T) {
	h := serve(t, api(t, hello), generous, nil)
	h.Trouble("b.yaml", "b.yaml is wrong")
	h.Trouble("a.yaml", "a.yaml is wrong")
	res, text := get(t, client(t), h.metrics+"/readyz")
	if want := "ready\nconfig: a.yaml is wrong; b.yaml is wrong; what was before stays in force\n"; res.StatusCode != 200 || text != want {
		t.Errorf("%d %q", res.StatusCode, text)
	}
	h.Trouble("a.yaml", "")
	if _, metrics := get(t, client(t), h.metrics+"/metrics"); !strings.Contains(metrics, "\ncomporta_config_last_reload_successful 0\n") {
		t.Error("one file is still wrong")
	}
	h.Trouble("b.yaml", "")
	if _, text := get(t, client(t), h.metrics+"/readyz"); text != "ready\n" {
		t.Errorf("%q", text)
	}
}

func TestWordsThatWaitAreToldOf(t *testing.T) {
	h := serve(t, api(t, hello), generous, nil)
	tells := func(readyz string, words int) {
		t.Helper()
		if res, text := get(t, client(t), h.metrics+"/readyz"); res.StatusCode != 200 || text != readyz {
			t.Errorf("%d %q, want %q", res.StatusCode, text, readyz)
		}
		if _, metrics := get(t, client(t), h.metrics+"/metrics"); !strings.Contains(metrics, fmt.Sprintf("\ncomporta_config_waiting_words %d\n", words)) {
			t.Errorf("the metrics do not tell of %d words", words)
		}
	}
	tells("ready\n", 0)
	h.Waiting([]string{"server.listen", "store"})
	tells("ready\nrestart to apply: server.listen, store\n", 2)
	h.Trouble("a.yaml", "a.yaml is wrong")
	tells("ready\nconfig: a.yaml is wrong; what was before stays in force\nrestart to apply: server.listen, store\n", 2)
	h.Trouble("a.yaml", "")
	h.Waiting(nil)
	tells("ready\n", 0)
}
