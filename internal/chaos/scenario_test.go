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
	noticed  = 10 * time.Second      // within which gateways know that their store fails
	jitter   = 40 * time.Millisecond // by which a busy machine is late with everything
	exact    = time.Second           // after the store is back, decisions are exact again
	free     = "/free/"              // a path without limits
	aside    = "/log/"               // one for requests beside those that are measured
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
	// aim, if any, is told before which client has used half of its limit.
	aim func(client string)
	// strike does it, and mend ends it: it returns when the store can serve again.
	// during, if any, is done over and over in between.
	strike, during, mend func()
}

// A cost is what a failure was measured to cost.
type cost struct {
	passed    int           // the most of one client
	disturbed bool          // more than the failure's own, by a machine too busy for the deadline
	p99, most time.Duration // for which a request waited for its limits
	back      time.Duration // from the store's return to the last decision without it
	grown     int           // bytes of the largest gateway's memory
}

// A trial is one failure that happens to a fleet under load.
type trial struct {
	failure
	*testing.T
	half, fresh, spent string // clients who used so much before
	all                answers

	began, struck, seen, ending, mended, up time.Time
	before, after                           size // when it was struck and when it was mended
	late                                    []string
}

// suffer lets a failure happen to a fleet, holds it against its bounds and
// measures its cost. What came late is told, since the machine may be to blame.
// Clients of one number know no others.
func (f *fleet) suffer(t *testing.T, number int, x failure) (c cost, late []string) {
	t.Helper()
	r := &trial{failure: x, T: t, half: fmt.Sprintf("198.18.%d.1", number), fresh: fmt.Sprintf("198.18.%d.2", number), spent: f.exactly(t, 2*number)}
	r.all = f.burst(10, limit/2, same("/local/", r.half))
	if x.aim != nil {
		x.aim(r.half)
	}

	r.began = time.Now()
	load := f.stream(500, func(i int) ask { return r.next(number, i) })
	r.before, r.struck = f.size(t), time.Now()
	x.strike()
	r.seen = time.Now()
	if x.down {
		r.seen = f.await(t, noticed, "store: down")
	}
	// As much as there is of the local budgets, and more.
	r.all = append(r.all, f.burst(10, 3*limit, same("/local/", r.fresh))...)
	for range 10 {
		if x.during != nil {
			x.during()
		}
		f.awaitAnswers(t, load, 50)
	}
	r.after, r.ending = f.size(t), time.Now()
	x.mend()
	r.mended = time.Now()
	r.up = f.await(t, noticed, "store: up")
	r.all = append(r.all, f.burst(10, 2*limit, same("/local/", r.fresh))...)
	f.awaitAnswers(t, load, 50)
	r.all = append(r.all, load.stop()...)

	r.statuses()
	c.disturbed = x.most == limit && len(r.all.byStore()) < len(r.all)
	c.passed = r.passed(c.disturbed)
	c.grown = r.after.bytes - r.before.bytes
	if c.grown > 32<<20 || r.after.goroutines > r.before.goroutines+200 {
		t.Errorf("a gateway grew from %+v to %+v", r.before, r.after)
	}
	limited, noise := split(f.waits(t, r.began))
	busy := quantile(noise, 1)
	c.p99, c.most, c.back = quantile(limited, 0.99), quantile(limited, 1), r.back(busy)
	// Some three in a hundred of these are asked before the store is known to be
	// down, so that p99 is one of them. A machine may hold up single ones.
	if c.p99 > deadline+jitter+busy || c.most > 10*deadline {
		r.tooLate("requests waited %v (p99) and %v at most for limits, want %v; those without limits %v", c.p99, c.most, deadline, busy)
	}
	f.exactly(t, 2*number+1)
	return c, r.late
}

func (r *trial) tooLate(format string, args ...any) {
	r.late = append(r.late, fmt.Sprintf(format, args...))
}

// next is the i-th request of the load. The kinds go round in a number that is no
// multiple of the gateways, so that each gateway gets all.
func (r *trial) next(number, i int) ask {
	once := fmt.Sprintf("198.19.%d.%d", number, i%256) // does not ask often enough to be refused
	switch i % 11 {
	case 0, 1, 2:
		return ask{path: "/local/", client: r.half}
	case 3, 4, 5:
		return ask{path: "/local/", client: r.fresh}
	case 6:
		return ask{path: "/local/", client: r.spent}
	case 7, 8:
		return ask{path: "/deny/", client: once}
	case 9:
		return ask{path: "/allow/", client: once}
	}
	return ask{path: free, client: once}
}

// statuses checks what each way of on_error may answer.
func (r *trial) statuses() {
	r.Helper()
	r.all.of("/local/", "").only(r, "on_error: local", http.StatusOK, http.StatusTooManyRequests)
	r.all.of("/allow/", "").only(r, "on_error: allow", http.StatusOK)
	r.all.of(free, "").only(r, "no limit", http.StatusOK)
	deny := r.all.of("/deny/", "")
	deny.only(r, "on_error: deny", http.StatusOK, http.StatusServiceUnavailable)
	for _, a := range deny {
		if a.status == http.StatusServiceUnavailable && (a.later == "" || a.store != "deny") {
			r.Errorf("on_error: deny: a 503 with Retry-After %q, Comporta-Store %q", a.later, a.store)
			break
		}
	}
	if r.down && !r.trails { // a failover may end before we look
		deny.since(r.seen).until(r.ending).only(r, "on_error: deny, while the store is down", http.StatusServiceUnavailable)
	}
}

// passed is the most that passed of one client, and is checked against the bound.
func (r *trial) passed(disturbed bool) (most int) {
	r.Helper()
	spare := 0
	if disturbed {
		spare = members * share
	}
	for _, client := range []string{r.half, r.fresh, r.spent} {
		mine := r.all.of("/local/", client)
		passed, bound := mine.count(http.StatusOK), r.most+spare
		if client == r.spent {
			if passed > 0 && !r.lost {
				r.Errorf("%d more passed of a client who had used up its %d before", passed, limit)
			}
			passed += limit
		}
		if r.trails {
			late := mine.since(r.struck.Add(-deadline)).until(r.seen.Add(deadline))
			bound += late.byStore().count(http.StatusOK)
		}
		if passed > bound {
			r.Errorf("%d of one client passed, want %d at most", passed, bound)
		}
		most = max(most, passed)
	}
	return most
}

// back is how long after the store's return the last decision without it was given.
func (r *trial) back(busy time.Duration) (d time.Duration) {
	for _, a := range r.all {
		if a.store != "" && a.begun.After(r.mended) {
			d = max(d, a.begun.Sub(r.mended))
		}
	}
	if bound, up := exact+deadline+busy, r.up.Sub(r.mended); d > bound || up > bound {
		r.tooLate("the last decision without the store was given %v after it was back, and it was seen up after %v; want %v", d, up, exact)
	}
	return d
}

// exactly checks that a new client gets its limit and not one more, and gives
// its name.
func (f *fleet) exactly(t *testing.T, number int) (client string) {
	t.Helper()
	got := undisturbed(t, func(try int) answers {
		client = fmt.Sprintf("198.18.%d.%d", number, 100+try)
		return f.burst(10, limit+50, same("/local/", client))
	})
	got.only(t, "exactly", http.StatusOK, http.StatusTooManyRequests)
	if passed := got.count(http.StatusOK); passed != limit {
		t.Errorf("%d of a new client passed, want %d", passed, limit)
	}
	return client
}

// undisturbed are answers that the store alone gave. A machine that is too busy
// for the deadline gets another try, with other clients.
func undisturbed(t *testing.T, ask func(try int) answers) answers {
	t.Helper()
	for try := range tries {
		if got := ask(try); len(got.byStore()) == len(got) {
			return got
		}
	}
	t.Fatalf("%d times some answers were given without the store", tries)
	return nil
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
