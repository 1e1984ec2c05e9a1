package policy_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// An outage starts from what was last known of a key.
func TestAnOutageIsNoNewBudget(t *testing.T) {
	for _, c := range []struct {
		numbers   string
		instances int
		spent     int           // on the store, before
		age       time.Duration // of its last answer
		want      int           // pass then
	}{
		{"10/min", 1, 0, 0, 10},
		{"10/min", 1, 7, 0, 3},
		{"10/min", 1, 10, 0, 0},
		{"10/min", 1, 12, 5999 * time.Millisecond, 0}, // the last answer denied
		{"10/min", 1, 12, 6 * time.Second, 1},
		{"10/min", 1, 10, 31 * time.Second, 5},
		{"10/min", 1, 10, time.Hour, 10},
		{"10/min", 4, 4, 0, 2}, // 6 are left: 1.5, rounded up
		{"10/min", 4, 10, 0, 0},
		{"10/min burst 4 as leaky_bucket", 1, 3, 0, 1},
		{"10/min as fixed_window", 1, 7, 59 * time.Second, 3},
		{"10/min as fixed_window", 1, 10, time.Minute, 10},
		{"10/min as fixed_window", 3, 9, 0, 1},
		{"10/min as sliding_log", 1, 7, 59 * time.Second, 3},
		{"10/min as sliding_log", 2, 10, 60 * time.Second, 5},
		{"10/min as sliding_counter", 1, 7, 59 * time.Second, 3},
		{"10/min as sliding_counter", 1, 10, 90 * time.Second, 5}, // half a window on
		{"10/min as sliding_counter", 1, 10, 2 * time.Minute, 10},
		{"0/s", 2, 3, 0, 0},
	} {
		t.Run(fmt.Sprintf("%s among %d after %d and %v", c.numbers, c.instances, c.spent, c.age), func(t *testing.T) {
			f := join(t, c.instances, limits(limit(t, "a", c.numbers)))
			f.passes(c.spent, "GET", "/", peer)
			f.now = f.now.Add(c.age)
			f.store.be(true)
			if got := f.passes(20, "GET", "/", peer); got != c.want {
				t.Errorf("%d pass, not %d", got, c.want)
			}
			if got := f.passes(20, "GET", "/", "198.51.100.1"); c.numbers != "0/s" && got < 1 {
				t.Error("a client that nothing is known of pays for another")
			}
		})
	}
}

// An answer that was denied under charge: attempts, and one after a settled debt,
// hold for as long as the store would hold them.
func TestADeniedClientStaysDenied(t *testing.T) {
	f := join(t, 1, limits(limit(t, "a", "10/min as fixed_window", attempts)))
	f.passes(12, "GET", "/", peer)
	f.store.be(true)
	for range 59 {
		if n := f.passes(3, "GET", "/", peer); n != 0 {
			t.Fatalf("%d pass at %v", n, f.now)
		}
		f.now = f.now.Add(time.Second)
	}
	f.now = f.now.Add(time.Second)
	if n := f.passes(20, "GET", "/", peer); n != 10 {
		t.Errorf("%d pass in a new window, not 10", n)
	}
}

// The store's clock is behind: its window goes on while the local one has ended.
// What was known is of the old one, and shuts nobody out of the new one.
func TestAWindowThatIsOverHereCountsNoMore(t *testing.T) {
	for _, stagger := range []bool{false, true} {
		f := join(t, 2, limits(limit(t, "a", "10/min as fixed_window", func(l *policy.Limit) { l.Limit.Stagger = stagger })))
		for i := range 8 { // whose windows differ with stagger
			peer := fmt.Sprint("192.0.2.", i)
			f.store.be(false)
			v := f.check(request("GET", "/", peer))
			key := comporta.Key{Limit: "a", Identity: v.Applied[0].Identity}
			f.now = f.now.Add(v.Applied[0].Decision.ResetAfter)
			f.store.know(key, comporta.Decision{Limit: 10, ResetAfter: time.Second, FullAfter: time.Second}, nil)
			f.store.be(true)
			if n := f.passes(20, "GET", "/", peer); n != 5 {
				t.Errorf("stagger %v: %d pass, not 5", stagger, n)
			}
		}
	}
}

// Many ask at once when the store fails: what is known is taken from them once.
func TestManyStartAtOnce(t *testing.T) {
	f := join(t, 1, limits(limit(t, "a", "1000/h as fixed_window", attempts)))
	f.passes(400, "GET", "/", peer)
	f.store.be(true)
	f.local.looked = func(comporta.Key, *comporta.Rule) {
		for range 100 {
			runtime.Gosched() // let another look, too
		}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for range 8 {
		all.Go(func() {
			n := f.passes(50, "GET", "/", peer)
			mu.Lock()
			defer mu.Unlock()
			passed += n
		})
	}
	all.Wait()
	if passed += f.passes(400, "GET", "/", peer); passed != 600 {
		t.Errorf("%d pass, not 600", passed)
	}
}

// A request that comes between the look at a local budget and the take from it
// leaves too little to take. That is no attempt of the client's.
func TestStartingIsNoAttempt(t *testing.T) {
	f := join(t, 1, limits(limit(t, "a", "10/min as fixed_window", attempts)))
	f.passes(9, "GET", "/", peer)
	f.store.be(true)
	f.local.looked = func(key comporta.Key, rule *comporta.Rule) {
		f.local.looked = nil
		if err := f.local.Take(t.Context(), []comporta.Take{{Key: key, Rule: rule, Cost: 5}}, make([]comporta.Taken, 1)); err != nil {
			t.Error(err)
		}
	}
	if v := f.check(request("GET", "/", peer)); !v.Allowed {
		t.Errorf("%s", fell(v))
	}
	if n := f.passes(9, "GET", "/", peer); n != 1 {
		t.Errorf("%d pass: what is known is taken by the next", n)
	}
}

// A store that comes and goes with each request: what it grants and what is
// granted without it are one budget each, not one for each outage.
func TestAStoreThatFlaps(t *testing.T) {
	for _, numbers := range []string{"20/h", "20/h as fixed_window", "20/h as sliding_log", "20/h as sliding_counter"} {
		for _, instances := range []int{1, 3} {
			f := join(t, instances, limits(limit(t, "a", numbers)))
			local := 0
			for i := range 400 {
				f.store.be(i%2 == 1)
				if v := f.check(request("GET", "/", peer)); v.Allowed && v.Fallen == policy.Local {
					local++
				}
			}
			if most := (20 + instances - 1) / instances; local > most {
				t.Errorf("%s among %d: %d pass without the store", numbers, instances, local)
			}
		}
	}
}

// Whatever a store does, what passes without it keeps the bounds of a share: the
// limit divided, rounded up, under the algorithm's own law.
func TestSharesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.Int64Range(1, 30).Draw(t, "units")
		instances := rapid.IntRange(1, 7).Draw(t, "instances")
		algorithm := rapid.SampledFrom(comporta.Algorithms()).Draw(t, "algorithm")
		l := &policy.Limit{Name: "a", Per: socket, Limit: comporta.Limit{Limit: units, Window: time.Minute, Algorithm: algorithm}}
		f := join(t, instances, limits(l))
		most := (units + int64(instances) - 1) / int64(instances)
		var at []time.Time // what passed without the store
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			f.now = f.now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 7, 30}).Draw(t, "pause")) * time.Second)
			f.store.be(rapid.Bool().Draw(t, "down"))
			if v := f.check(request("GET", "/", peer)); v.Allowed && v.Fallen == policy.Local {
				at = append(at, f.now)
			}
		}
		for i, from := range at {
			n, windows := int64(0), int64(1) // in a minute from here on
			for _, other := range at[i:] {
				if other.Sub(from) < time.Minute {
					n++
				}
			}
			if algorithm != comporta.SlidingLog {
				windows = 2 // around a boundary; a bucket's burst and what it fills by
			}
			if n > windows*most {
				t.Fatalf("%d pass in a minute without the store, of %d among %d", n, units, instances)
			}
		}
		counts := map[int64]int64{}
		for _, other := range at {
			counts[other.Unix()/60]++
		}
		for _, n := range counts {
			if algorithm == comporta.FixedWindow && n > most {
				t.Fatalf("%d pass in one window, of %d among %d", n, units, instances)
			}
		}
	})
}
