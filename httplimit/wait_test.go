package httplimit_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/policy"
)

// A leaky bucket's requests go on evenly spaced, though they come at once.
func TestDelaysAreWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "1/s burst 4", comporta.LeakyBucket)}}, httplimit.Options{})
		start := time.Now()
		ran := make(chan time.Duration, 5)
		h := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran <- time.Since(start) }))
		var refused atomic.Int32
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if ask(h, get("/")).StatusCode == 429 {
					refused.Add(1)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		close(ran)
		var at []time.Duration
		for d := range ran {
			at = append(at, d)
		}
		if diff := cmp.Diff([]time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}, at); diff != "" {
			t.Errorf("ran at (-want +got):\n%s", diff)
		}
		if refused.Load() != 1 {
			t.Errorf("%d refused, want 1", refused.Load())
		}
	})
}

// When the context ends first the handler does not run, and no one is told that
// all is well.
func TestWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := perAddress(t, "a", "1/min", comporta.TokenBucket)
		l.Limit.MaxWait = time.Hour
		limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{l}}, httplimit.Options{})
		ran := 0
		h := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran++ }))
		ask(h, get("/"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		r := ask(h, get("/").WithContext(ctx))
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("waited %v", waited)
		}
		if got := brief(r); got != "503 0 120" || ran != 1 {
			t.Errorf("%s, the handler ran %d times", got, ran)
		}
	})
}

// A body comes whole to a handler that had to wait, and with the error that it
// ends with, where it has one.
func TestBodiesOutlastTheWait(t *testing.T) {
	for _, size := range []int{1, 5, 64 << 10, 64<<10 + 1, 300_000} {
		for _, fault := range []error{nil, errors.New("odd")} {
			synctest.Test(t, func(t *testing.T) {
				limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "1/s burst 4", comporta.LeakyBucket)}}, httplimit.Options{})
				var got []byte
				var err error
				h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					got, err = io.ReadAll(r.Body)
					r.Body.Close()
				}))
				sent := bytes.Repeat([]byte("x"), size)
				for range 2 { // the second one waits
					body := io.Reader(bytes.NewReader(sent))
					if fault != nil {
						body = io.MultiReader(body, iotest.ErrReader(fault))
					}
					if r := ask(h, httptest.NewRequest(http.MethodPost, "/", body)); r.StatusCode != http.StatusOK {
						t.Fatal(r.Status)
					}
					if !bytes.Equal(got, sent) || err != fault {
						t.Errorf("%d bytes: %d came, and %v, want %v", size, len(got), err, fault)
					}
				}
			})
		}
	}
}
