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
	jitter   = 40 * time.Millisecond // by which a busy machine is late with everything
	exact    = time.Second           // after the store is back, decisions are exact again
	free     = "/free/"              // a path without limits
)

// A failure is what is done to a store, and what that may cost.
type failure struct {
	name string
	// bound says what most, down, lost and trails come to.
	bound string
	// most is the most requests of one client that may pass, whose limit is 100.
	most int
	// down says that all gateways find the store down.
	down bool
	// lost says that the store forgets what was spent, and trails that it forgets
	// what was spent after strike began.
	lost, trails bool
	// strike does it, and mend ends it: it returns when the store can serve again.
	// during, if any, is done over and over in between.
	strike, during, mend func()
}

// A cost is what a failure was measured to cost.
type cost struct {
	passed    int           // the most of one client
	p99, most time.Duration // for which a request waited for its limits
	back      time.Duration // from the store's return to the last decision without it
	grown     int           // bytes of the largest gateway's memory
}

// halfOf is the client of a failure who has used half of its limit before.
func halfOf(number int) string { return fmt.Sprintf("198.18.%d.1", number) }

// suffer lets a failure happen to a fleet under load, holds it against its bounds
// and measures its cost. Clients of one scenario number know no others.
func (f *fleet) suffer(t *testing.T, number int, x failure) cost {
	t.Helper()
	spent := f.exactly(t, 2*number)
	half, fresh := halfOf(number), fmt.Sprintf("198.18.%d.2", number)
	before := f.burst(10, limit/2, same("/local/", half))

	began := time.Now()
	load := f.stream(500, func(i int) ask {
		once := fmt.Sprintf("198.19.%d.%d", number, i%256) // passes 100 times before it is refused
		switch i % 11 {                                    // no multiple of the gateways, so that each gets all
		case 0, 1, 2:
			return ask{path: "/local/", client: half}
		case 3, 4, 5:
			return ask{path: "/local/", client: fresh}
		case 6:
			return ask{path: "/local/", client: spent}
		case 7, 8:
			return ask{path: "/deny/", client: once}
		case 9:
			return ask{path: "/allow/", client: once}
		}
		return ask{path: free, client: once}
	})
	bytes, goroutines := f.size(t)
	from := time.Now()
	x.strike()
	struck := time.Now()
	if x.down {
		struck = f.await(t, noticed, "store: down")
	}
	for range 10 {
		if x.during != nil {
			x.during()
		}
		f.awaitAnswers(t, load, 50)
	}
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
	if x.down && !x.trails { // what trails may be back before we look
		deny.since(struck).until(ending).only(t, "on_error: deny, while the store is down", http.StatusServiceUnavailable)
	}

	got := cost{grown: grown - bytes}
	all = append(all, before...)
	spare := 0
	if !x.down && all.fallen() > 0 {
		spare = members * share // the machine was too busy for the deadline
	}
	again := all.of("/local/", spent).count(http.StatusOK)
	for _, client := range []string{half, fresh, spent} {
		mine := all.of("/local/", client)
		passed, most := mine.count(http.StatusOK), x.most+spare
		if client == spent {
			passed += limit
		}
		if x.trails {
			most += mine.since(from.Add(-deadline)).until(struck.Add(deadline)).count(http.StatusOK)
		}
		if got.passed = max(got.passed, passed); passed > most {
			t.Errorf("%d of one client passed, want %d at most", passed, most)
		}
	}
	if again > 0 && !x.lost {
		t.Errorf("%d more passed of a client who had used up its %d before", again, limit)
	}
	for _, a := range all {
		if a.store != "" && a.begun.After(mended) {
			got.back = max(got.back, a.begun.Sub(mended))
		}
	}
	limited, noise := split(f.waits(t, began))
	if bound := exact + deadline + quantile(noise, 1); got.back > bound || up.Sub(mended) > bound {
		t.Errorf("the last decision without the store was given %v after it was back, and it was seen up after %v; want %v", got.back, up.Sub(mended), exact)
	}
	got.p99, got.most = quantile(limited, 0.99), quantile(limited, 1)
	// At the start of an outage some three in a hundred wait, so that p99 is of these.
	// A machine may hold up single ones.
	if got.p99 > deadline+jitter+quantile(noise, 1) || got.most > 10*deadline {
		t.Errorf("requests waited %v (p99) and %v at most for limits, want %v; those without limits %v", got.p99, got.most, deadline, quantile(noise, 1))
	}
	if got.grown > 32<<20 || more > goroutines+200 {
		t.Errorf("a gateway grew by %d bytes, from %d to %d goroutines", got.grown, goroutines, more)
	}
	f.exactly(t, 2*number+1)
	return got
}

// exactly checks that a new client gets its limit and not one more, by the store.
// A machine that is too busy for the deadline gets another try.
func (f *fleet) exactly(t *testing.T, number int) string {
	t.Helper()
	for try := range tries {
		client := fmt.Sprintf("198.18.%d.%d", number, 100+try)
		got := f.burst(10, limit+50, same("/local/", client))
		got.only(t, "exactly", http.StatusOK, http.StatusTooManyRequests)
		if got.fallen() > 0 {
			continue
		}
		if passed := got.count(http.StatusOK); passed != limit {
			t.Errorf("%d of a new client passed, want %d", passed, limit)
		}
		return client
	}
	t.Fatalf("of %d times that a new client asked, none was answered by the store alone", tries)
	return ""
}

const tries = 10

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
