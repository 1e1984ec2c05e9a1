package chaos

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
)

const (
	deadline = 50 * time.Millisecond // of a call to the store, as the policy has it by default
	noticed  = 3 * time.Second       // within which gateways know that their store fails
	exact    = time.Second           // after the store is back, decisions are exact again
	free     = "/free/"              // a path without limits
)

// A failure is what is done to a store, and what that may cost.
type failure struct {
	// most is the most requests of one client that may pass, whose limit is 100.
	most int
	// down says that all gateways find the store down.
	down bool
	// lost says that the store forgets what was spent.
	lost bool
	// strike does it, and mend ends it: it returns when the store can serve again.
	strike, mend func()
}

// A cost is what a failure was measured to cost.
type cost struct {
	passed    int           // the most of one client
	p99, most time.Duration // for which a request waited for its limits
	back      time.Duration // from the store's return to the last decision without it
	grown     int           // bytes of the largest gateway's memory
}

// clients are three to whom a failure happens, and their paths.
type clients struct{ half, spent, fresh string }

// nth are clients of a scenario that no other has.
func nth(n int) clients {
	at := func(i int) string { return fmt.Sprintf("198.18.%d.%d", n, i) }
	return clients{at(1), at(2), at(3)}
}

// suffer lets a failure happen to a fleet under load, holds it against its bounds
// and measures its cost. Clients of one scenario number know no others.
func (f *fleet) suffer(t *testing.T, number int, x failure) cost {
	t.Helper()
	c := nth(number)
	before := f.burst(20, 150, same("/local/", c.spent))
	before = append(before, f.burst(20, limit/2, same("/local/", c.half))...)
	before.only(t, "before", http.StatusOK, http.StatusTooManyRequests)
	if got := before.of("", c.spent).count(http.StatusOK); got != limit {
		t.Errorf("before: %d of one client passed, want %d", got, limit)
	}

	load := f.stream(500, func(i int) ask {
		once := fmt.Sprintf("198.19.%d.%d", number, i%256) // passes 100 times before it is refused
		switch i % 10 {
		case 0, 1, 2:
			return ask{path: "/local/", client: c.half}
		case 3, 4:
			return ask{path: "/local/", client: c.fresh}
		case 5:
			return ask{path: "/local/", client: c.spent}
		case 6, 7:
			return ask{path: "/deny/", client: once}
		case 8:
			return ask{path: "/allow/", client: once}
		}
		return ask{path: free, client: once}
	})
	bytes, goroutines := f.size(t)
	x.strike()
	struck := time.Now()
	if x.down {
		struck = f.await(t, noticed, "store: down")
	}
	f.awaitAnswers(t, load, 500)
	grown, more := f.size(t)
	ending := time.Now()
	x.mend()
	mended := time.Now()
	up := f.await(t, 5*time.Second, "store: up")
	f.awaitAnswers(t, load, 100)
	all := load.stop()

	all.only(t, "all", http.StatusOK, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	all.of("/local/", "").only(t, "on_error: local", http.StatusOK, http.StatusTooManyRequests)
	all.of("/allow/", "").only(t, "on_error: allow", http.StatusOK)
	all.of(free, "").only(t, "no limit", http.StatusOK)
	deny := all.of("/deny/", "")
	deny.only(t, "on_error: deny", http.StatusOK, http.StatusServiceUnavailable)
	for _, a := range deny {
		if a.status == http.StatusServiceUnavailable && (a.later == "" || a.store != "deny") {
			t.Errorf("on_error: deny: a 503 with Retry-After %q, Comporta-Store %q", a.later, a.store)
			break
		}
	}
	if x.down {
		deny.since(struck).until(ending).only(t, "on_error: deny, while the store is down", http.StatusServiceUnavailable)
	}

	got := cost{grown: grown - bytes}
	all = append(all, before...)
	for _, client := range []string{c.half, c.spent, c.fresh} {
		got.passed = max(got.passed, all.of("/local/", client).count(http.StatusOK))
	}
	if got.passed > x.most {
		t.Errorf("%d of one client passed, want %d at most", got.passed, x.most)
	}
	if spent := all.of("/local/", c.spent).count(http.StatusOK); !x.lost && spent > limit {
		t.Errorf("%d passed of a client who had used up its %d before", spent, limit)
	}
	for _, a := range all {
		if a.store != "" && a.at.After(mended) {
			got.back = max(got.back, a.at.Sub(mended))
		}
	}
	if late := up.Sub(mended); got.back > exact || late > exact+deadline {
		t.Errorf("the last decision without the store was given %v after it was back, and it was seen up after %v; want %v", got.back, late, exact)
	}

	limited, noise := split(f.waits(t, len(all)))
	got.p99, got.most = quantile(limited, 0.99), quantile(limited, 1)
	if bound := deadline + quantile(noise, 1); got.p99 > bound || got.most > bound+deadline {
		t.Errorf("requests waited %v (p99) and %v at most for limits, want %v; those without limits %v", got.p99, got.most, deadline, quantile(noise, 1))
	}
	if got.grown > 16<<20 || more > goroutines+200 {
		t.Errorf("a gateway grew by %d bytes, from %d to %d goroutines", got.grown, goroutines, more)
	}
	f.exactly(t, fmt.Sprintf("198.18.%d.9", number))
	return got
}

// exactly checks that a new client gets its limit and not one more, by the store.
func (f *fleet) exactly(t *testing.T, client string) {
	t.Helper()
	after := f.burst(20, limit+50, same("/local/", client))
	after.only(t, "afterwards", http.StatusOK, http.StatusTooManyRequests)
	for _, a := range after {
		if a.store != "" {
			t.Errorf("afterwards: a decision by %s", a.store)
			break
		}
	}
	if got := after.count(http.StatusOK); got != limit {
		t.Errorf("afterwards %d of a new client passed, want %d", got, limit)
	}
	f.waits(t, len(after))
}

// awaitAnswers waits for so many more answers.
func (f *fleet) awaitAnswers(t *testing.T, s *stream, n int) {
	t.Helper()
	want := len(s.soFar()) + n
	redistest.Until(t, 20*time.Second, func() error {
		if got := len(s.soFar()); got < want {
			return fmt.Errorf("%d answers of %d", got, want)
		}
		return nil
	})
}
