package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
)

// crowd fills a store with keys that are never dropped.
func crowd(t *testing.T, c *clock, keys int) *memstore.Store {
	t.Helper()
	s := open(t, memstore.Options{MaxKeys: keys, Now: c.now})
	slow := compile(t, "10/2h", comporta.FixedWindow)
	for i := range keys {
		take(t, s, slow, "slow", fmt.Sprint(i), 1)
	}
	return s
}

// Two clients of one limit in one step, both new and both without room, are each charged.
func TestTwoKeysOfALimitOverflowInOneStep(t *testing.T) {
	for _, algorithm := range comporta.Algorithms() {
		c := &clock{time.Unix(1e9, 0)}
		s := crowd(t, c, 20)
		r := compile(t, "10/min", algorithm)
		units := int64(0)
		for i := range 30 {
			takes := []comporta.Take{
				{Key: comporta.Key{Limit: "l", Identity: fmt.Sprint("a", i)}, Rule: r, Cost: 3},
				{Key: comporta.Key{Limit: "l", Identity: fmt.Sprint("b", i)}, Rule: r, Cost: 1},
			}
			var out [2]comporta.Taken
			if err := s.Take(t.Context(), takes, out[:]); err != nil {
				t.Fatal(err)
			}
			if comporta.Resolve(takes, out[:]).Allowed {
				units++
			}
		}
		if units != 3 { // the client that pays 3 is the first to be denied
			t.Errorf("%v: %d steps of 3 units were allowed on a limit of 10", algorithm, units)
		}
	}
}

// The windows of an overflow key are its own, not those of the client that comes by.
func TestAnOverflowKeyIsStaggeredOnce(t *testing.T) {
	for _, algorithm := range []comporta.Algorithm{comporta.FixedWindow, comporta.SlidingCounter} {
		c := &clock{time.Unix(1e9, 0)}
		s := crowd(t, c, 20)
		l, err := comporta.ParseLimit("10/min")
		if err != nil {
			t.Fatal(err)
		}
		l.Algorithm, l.Stagger = algorithm, true
		r, err := l.Compile()
		if err != nil {
			t.Fatal(err)
		}
		allowed, start := 0, c.at
		for i := range 6000 {
			c.at = c.at.Add(5 * time.Millisecond)
			if take(t, s, r, "l", fmt.Sprint("new-", i), 1).Allowed {
				allowed++
			}
		}
		if most := r.Bound(c.at.Sub(start)); int64(allowed) > most {
			t.Errorf("%v: %d were allowed in %v, and the bound is %d", algorithm, allowed, c.at.Sub(start), most)
		}
	}
}

// A staggered counter has nothing remaining where its previous window was full:
// it is not dropped for a new key, or else it might go on at once.
func TestAnEmptiedStaggeredCounterStays(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	s := open(t, memstore.Options{MaxKeys: 100, Now: c.now})
	r, err := comporta.Limit{Algorithm: comporta.SlidingCounter, Limit: 100, Window: time.Minute, Stagger: true}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	var emptied []string
	for i := range 100 {
		take(t, s, r, "l", fmt.Sprint(i), 100)
	}
	c.at = c.at.Add(30 * time.Second) // the windows of half the keys have turned
	for i := range 100 {
		take(t, s, r, "l", fmt.Sprint(i), take(t, s, r, "l", fmt.Sprint(i), 0).Remaining)
	}
	for i := range 100 {
		if id := fmt.Sprint(i); take(t, s, r, "l", id, 0).Remaining == 0 {
			emptied = append(emptied, id)
		}
	}
	if len(emptied) != 100 {
		t.Fatalf("of 100 keys %d are emptied", len(emptied))
	}
	for i := range 300 {
		take(t, s, r, "l", fmt.Sprint("new-", i), 1)
	}
	for _, id := range emptied {
		if take(t, s, r, "l", id, 0).Remaining > 0 {
			t.Fatalf("%s was dropped, and may go on: %+v", id, s.Stats())
		}
	}
}
