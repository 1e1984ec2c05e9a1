package memstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/storetest"
)

func open(t *testing.T, o memstore.Options) *memstore.Store {
	t.Helper()
	s, err := memstore.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() time.Time) comporta.Store {
		return open(t, memstore.Options{Now: now})
	})
}

// clock is a time that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func compile(t testing.TB, text string, a comporta.Algorithm) *comporta.Rule {
	t.Helper()
	l, err := comporta.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	l.Algorithm = a
	r, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func take(t testing.TB, s *memstore.Store, r *comporta.Rule, limit, identity string, cost int64) comporta.Decision {
	t.Helper()
	d, err := s.TakeOne(context.Background(), comporta.Key{Limit: limit, Identity: identity}, r, cost)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestATakeAllocatesNothing(t *testing.T) {
	s := open(t, memstore.Options{})
	for _, a := range comporta.Algorithms() {
		for _, text := range []string{"1000000/s", "1/24h"} { // allowed, denied
			limit, err := comporta.ParseLimit(text)
			if err != nil {
				t.Fatal(err)
			}
			limit.Algorithm, limit.Name = a, text+a.String()
			l, err := comporta.NewLimiter(s, limit)
			if err != nil {
				t.Fatal(err)
			}
			one := func() {
				if _, err := l.Take(t.Context(), "client-7", 1); err != nil {
					t.Fatal(err)
				}
			}
			for range 100 {
				one() // a sliding log grows to its size
			}
			if n := testing.AllocsPerRun(1000, one); n != 0 {
				t.Errorf("%s %v: %v allocations", text, a, n)
			}
		}
	}
}

// At the bound the fullest of a sample goes, the emptied stay, and what is full
// again goes first of all.
func TestTheBoundHolds(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	s := open(t, memstore.Options{MaxKeys: 100, Now: c.now})
	r := compile(t, "10/min", comporta.TokenBucket)
	for i := range 50 {
		take(t, s, r, "l", fmt.Sprint("emptied-", i), 10)
	}
	for i := range 1000 {
		take(t, s, r, "l", fmt.Sprint("passing-", i), 1)
		if n := s.Stats().Keys; n > 100 {
			t.Fatalf("%d keys", n)
		}
	}
	for i := range 50 {
		if d := take(t, s, r, "l", fmt.Sprint("emptied-", i), 1); d.Allowed {
			t.Fatalf("emptied-%d was dropped: it may go on", i)
		}
	}
	if st := s.Stats(); st.Evicted < 900 || st.Overflowed != 0 {
		t.Errorf("%+v", st)
	}
	c.at = c.at.Add(time.Hour) // all are full again
	evicted := s.Stats().Evicted
	for i := range 100 {
		take(t, s, r, "l", fmt.Sprint("later-", i), 1)
	}
	if n := s.Stats().Evicted - evicted; n > 50 { // a sample may miss the last few
		t.Errorf("%d keys were evicted though others were full", n)
	}
}

// Where no key may be dropped, new ones share their limit's overflow key.
func TestNewKeysShareTheOverflowKey(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	s := open(t, memstore.Options{MaxKeys: 20, Now: c.now})
	slow, quick := compile(t, "10/2h", comporta.FixedWindow), compile(t, "10/min", comporta.FixedWindow)
	for i := range 10 {
		take(t, s, slow, "slow", fmt.Sprint(i), 1) // takes over an hour to fill: never dropped
		take(t, s, quick, "quick", fmt.Sprint(i), 10)
	}
	allowed := 0
	for i := range 100 {
		if take(t, s, quick, "quick", fmt.Sprint("new-", i), 1).Allowed {
			allowed++
		}
	}
	if st := s.Stats(); allowed != 10 || st.Evicted != 0 || st.Overflowed != 100 || st.Keys != 21 {
		t.Errorf("%d of 100 new keys were allowed on a limit of 10; %+v", allowed, st)
	}
	if d := take(t, s, slow, "slow", "new", 1); d.Remaining != 9 {
		t.Errorf("the other limit's overflow key has %d left", d.Remaining)
	}
	if d := take(t, s, slow, "slow", "3", 1); d.Remaining != 8 {
		t.Errorf("a resident key has %d left", d.Remaining)
	}
}

func TestSeveralLimitsKeepToTheBound(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	s := open(t, memstore.Options{MaxKeys: 20, Now: c.now})
	r := compile(t, "10/min", comporta.TokenBucket)
	for i := range 200 {
		id := fmt.Sprint(i)
		takes := []comporta.Take{{Key: comporta.Key{Limit: "a", Identity: id}, Rule: r, Cost: 1}, {Key: comporta.Key{Limit: "b", Identity: id}, Rule: r, Cost: 2}}
		var out [2]comporta.Taken
		if err := s.Take(t.Context(), takes, out[:]); err != nil {
			t.Fatal(err)
		}
		if out[0].Remaining != 9 || out[1].Remaining != 8 || s.Stats().Keys > 20 {
			t.Fatalf("request %d: %+v; %+v", i, out, s.Stats())
		}
	}
}

func TestWhatIsFullIsSwept(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	s := open(t, memstore.Options{Now: c.now})
	for _, a := range comporta.Algorithms() {
		r := compile(t, "10/s", a)
		for i := range 5000 {
			take(t, s, r, a.String(), fmt.Sprint(i), 3)
		}
	}
	if n := s.Stats().Keys; n != 25_000 {
		t.Fatalf("%d keys", n)
	}
	c.at = c.at.Add(1500 * time.Millisecond)
	s.Sweep()
	if n := s.Stats().Keys; n != 15_000 { // of the buckets alone it is over a second that they were full
		t.Fatalf("after 1.5 s %d keys", n)
	}
	c.at = c.at.Add(1500 * time.Millisecond)
	s.Sweep()
	if st := s.Stats(); st.Keys != 0 || st.LogBytes != 0 || st.Evicted != 0 {
		t.Fatalf("%+v", st)
	}
}

// A table that is full makes room by what is full again, without a sweep.
func TestPassingKeysDoNotAddUp(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	s := open(t, memstore.Options{Now: c.now})
	r := compile(t, "10/s", comporta.TokenBucket)
	for i := range 300_000 {
		c.at = c.at.Add(time.Millisecond) // a key is full again after 100 others
		take(t, s, r, "l", fmt.Sprint(i), 1)
	}
	if n := s.Stats().Keys; n > 10_000 {
		t.Errorf("%d keys are kept of the 1,100 that are not full, or were not a second ago", n)
	}
}

// Sliding logs stay within their bytes, and admit no more for that.
func TestSlidingLogsAreBoundedInBytes(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	s := open(t, memstore.Options{MaxLogBytes: 64 << 10, Now: c.now})
	r := compile(t, "100000/min", comporta.SlidingLog)
	allowed := 0
	for range 150_000 {
		c.at = c.at.Add(10 * time.Microsecond)
		if take(t, s, r, "l", "k", 1).Allowed {
			allowed++
		}
	}
	if st := s.Stats(); allowed != 100_000 || st.LogBytes > 100<<10 {
		t.Errorf("%d allowed, %+v", allowed, st)
	}
}

// Any number of takers, of keys that come and go at the bound, with sweeps
// between: no race, and never over the limit.
func TestManyAtOnceAtTheBound(t *testing.T) {
	s := open(t, memstore.Options{MaxKeys: 500, Sweep: time.Millisecond})
	hot := compile(t, "1000/24h", comporta.TokenBucket)
	cold := compile(t, "5/1ms", comporta.SlidingCounter)
	var wg sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for g := range 64 {
		wg.Go(func() {
			mine := 0
			for i := range 500 {
				if take(t, s, hot, "hot", "one", 1).Allowed {
					mine++
				}
				take(t, s, cold, "cold", fmt.Sprint(g, i), 1)
			}
			mu.Lock()
			allowed += mine
			mu.Unlock()
		})
	}
	wg.Wait()
	if allowed < 1000 || allowed > 1001 { // one unit comes back in 86 s
		t.Errorf("%d allowed of 1000", allowed)
	}
}
