package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/storetest"
	"pgregory.net/rapid"
)

// A use is units that went on between two instants: the same, where the clock is
// the test's.
type use struct {
	from, to comporta.Instant
	units    int64
}

// most is the most units that went on within any window of a length, begun with
// any use; of those alone that begin at multiples of it where aligned is set.
func most(uses []use, over time.Duration, aligned bool) (units int64) {
	length := comporta.Instant(over.Microseconds())
	for _, u := range uses {
		start, sum := u.from, int64(0)
		if aligned {
			start -= start % length
		}
		for _, o := range uses {
			if o.from >= start && o.to < start+length {
				sum += o.units
			}
		}
		units = max(units, sum)
	}
	return units
}

// checkBounds holds uses against what docs/leases.md promises. What was given back
// to a bucket may go on again, however much has flowed in meanwhile.
func checkBounds(t interface{ Errorf(string, ...any) }, rule *comporta.Rule, uses []use, back int64) {
	limit := rule.Limit()
	if !rule.Algorithm().Bucket() {
		if got := most(uses, limit.Window, true); got > rule.Full() {
			t.Errorf("%d units in a window of %v %v", got, rule.Algorithm(), limit)
		}
	}
	share := limit.Lease.Most(rule.Full())
	if !rule.Algorithm().Bucket() {
		back = 0
	}
	for _, over := range []time.Duration{limit.Window, limit.Window / 3, 2 * limit.Window} {
		if got, bound := most(uses, over, false), rule.Bound(over); got > bound+share+back {
			t.Errorf("%d units in %v of %v %v, whose bound is %d, and %d in leases", got, over, rule.Algorithm(), limit, bound, share)
		}
	}
}

// drawLeased draws a limit with a lease.
func drawLeased(t *rapid.T) *comporta.Rule {
	limit := comporta.Limit{
		Name:      "requests",
		Algorithm: rapid.SampledFrom([]comporta.Algorithm{comporta.TokenBucket, comporta.FixedWindow, comporta.SlidingCounter, comporta.SlidingLog}).Draw(t, "algorithm"),
		Limit:     rapid.Int64Range(1, 300).Draw(t, "limit"),
		Window:    rapid.SampledFrom([]time.Duration{10 * time.Millisecond, 70 * time.Millisecond, time.Second}).Draw(t, "window"),
		Lease: &comporta.Lease{
			Size:  rapid.SampledFrom([]int64{2, 5, 30, 1000}).Draw(t, "size"),
			TTL:   rapid.SampledFrom([]time.Duration{10 * time.Millisecond, 50 * time.Millisecond, time.Second}).Draw(t, "ttl"),
			Share: rapid.SampledFrom([]int{10, 25, 50}).Draw(t, "share"),
		},
	}
	rule, err := limit.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// TestLeaseBounds lets some instances that share a clock take, settle, die and
// close: what goes on keeps within the bounds, no more than the share ever lies
// in leases, and in the end no unit is missing or came back twice.
func TestLeaseBounds(t *testing.T) {
	server := redistest.Start(t)
	var runs int
	rapid.Check(t, func(t *rapid.T) {
		runs++
		f := newFleet(t, server, fmt.Sprintf("client %d", runs))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"take", "take", "take", "wait", "settle", "die", "close"}).Draw(t, "act") {
			case "take":
				for range rapid.IntRange(1, 20).Draw(t, "times") {
					f.take(rapid.SampledFrom([]int64{1, 1, 1, 2, 5}).Draw(t, "cost"))
				}
			case "wait":
				if f.still {
					continue
				}
				w := f.rule.Limit().Window
				f.clock.Advance(rapid.SampledFrom([]time.Duration{1, time.Millisecond, w / 3, w, f.rule.Lease().TTL, 3 * w}).Draw(t, "wait"))
			case "settle":
				for range rapid.IntRange(1, 10).Draw(t, "settles") {
					f.settle()
				}
			case "die":
				f.leave(false)
			case "close":
				f.leave(true)
			}
			f.check()
		}
		f.end()
	})
}

// A fleet is some stores on one server and one clock.
type fleet struct {
	t      *rapid.T
	rule   *comporta.Rule
	key    comporta.Key
	clock  storetest.Clock
	server *redistest.Server
	stores []instance
	uses   []use
	taken  []taken // may still be settled
	ended  []instance
	lost   int64
	back   int64
	still  bool // the clock stands
}

type taken struct {
	receipt comporta.Receipt
	use     int
}

// An instance is a store whose client may be cut off.
type instance struct {
	*redisstore.Store
	client *cuttable
}

func newFleet(t *rapid.T, server *redistest.Server, identity string) *fleet {
	f := &fleet{t: t, rule: drawLeased(t), key: comporta.Key{Limit: "requests", Identity: identity}, server: server}
	f.clock.Set(comporta.InstantOf(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)))
	f.still = rapid.Bool().Draw(t, "still")
	for range rapid.IntRange(1, 3).Draw(t, "instances") {
		f.stores = append(f.stores, f.open())
	}
	return f
}

func (f *fleet) open() instance {
	client := &cuttable{raw: raw{f.server}}
	s, err := redisstore.New(client, redisstore.Options{Now: f.clock.Now, Timeout: 5 * time.Second, Heartbeat: time.Hour})
	if err != nil {
		f.t.Fatal(err)
	}
	return instance{s, client}
}

func (f *fleet) any() instance {
	return f.stores[rapid.IntRange(0, len(f.stores)-1).Draw(f.t, "instance")]
}

func (f *fleet) take(cost int64) {
	s := f.any()
	var out [1]comporta.Taken
	if err := s.Take(context.Background(), []comporta.Take{{Key: f.key, Rule: f.rule, Cost: cost}}, out[:]); err != nil {
		f.t.Fatal(err)
	}
	s.Quiet()
	if out[0].Allowed {
		now := f.clock.Instant()
		f.taken = append(f.taken, taken{out[0].Receipt, len(f.uses)})
		f.uses = append(f.uses, use{now, now, cost})
	}
}

// settle settles a take to less, by whichever instance.
func (f *fleet) settle() {
	if len(f.taken) == 0 {
		return
	}
	i := rapid.IntRange(0, len(f.taken)-1).Draw(f.t, "take")
	of := f.taken[i]
	f.taken = slices.Delete(f.taken, i, i+1)
	actual := rapid.SampledFrom([]int64{0, 0, of.receipt.Cost / 2, of.receipt.Cost}).Draw(f.t, "actual")
	s := f.any()
	var out [1]comporta.Taken
	err := s.Settle(context.Background(), []comporta.Settlement{{Key: f.key, Rule: f.rule, Taken: of.receipt, Actual: actual}}, out[:])
	if err != nil {
		f.t.Fatal(err)
	}
	s.Quiet()
	f.uses[of.use].units = actual
	f.back += of.receipt.Cost - actual
}

// leave ends an instance, which gives back what it has or loses it.
func (f *fleet) leave(well bool) {
	if len(f.stores) == 1 {
		return
	}
	i := rapid.IntRange(0, len(f.stores)-1).Draw(f.t, "who")
	s := f.stores[i]
	f.stores = slices.Delete(f.stores, i, i+1)
	if well {
		s.Close()
		return
	}
	f.lost += s.Held(f.key)
	s.client.cut.Store(true)
	f.ended = append(f.ended, s)
}

func (f *fleet) check() {
	var lying int64
	for _, s := range f.stores {
		lying += s.Held(f.key)
	}
	if share := f.rule.Lease().Most(f.rule.Full()); lying > share {
		f.t.Fatalf("%d units lie in leases, and %d may", lying, share)
	}
}

func (f *fleet) end() {
	checkBounds(f.t, f.rule, f.uses, f.back)
	for _, s := range append(f.stores, f.ended...) {
		s.Close()
	}
	if !f.still {
		return // some may have come back by time
	}
	left := f.rule.Full() - f.lost
	for _, u := range f.uses {
		left -= u.units
	}
	plain := f.open()
	defer plain.Close()
	d, err := plain.TakeOne(context.Background(), f.key, f.rule, 0)
	if err != nil || d.Remaining != left {
		f.t.Errorf("%d remain, want %d: units are missing or came back twice (%v)", d.Remaining, left, err)
	}
}

// TestLeaseBoundsAtOnce is the same in real time, with many at once.
func TestLeaseBoundsAtOnce(t *testing.T) {
	server := redistest.Start(t)
	for _, algorithm := range []comporta.Algorithm{comporta.TokenBucket, comporta.FixedWindow, comporta.SlidingCounter, comporta.SlidingLog} {
		t.Run(algorithm.String(), func(t *testing.T) {
			rule := leased(t, comporta.Limit{Algorithm: algorithm, Limit: 400, Window: 200 * time.Millisecond}, comporta.Lease{TTL: 40 * time.Millisecond, Share: 50})
			key := comporta.Key{Limit: "requests", Identity: algorithm.String()}
			var mu sync.Mutex
			var uses []use
			var served int64
			var all sync.WaitGroup
			until := time.Now().Add(700 * time.Millisecond)
			for range 3 {
				s := openOn(t, server, redisstore.Options{})
				all.Go(func() {
					var own sync.WaitGroup
					for range 4 {
						own.Go(func() {
							for time.Now().Before(until) || s.Stats().Leases.Served == 0 && time.Now().Before(until.Add(10*time.Second)) {
								u := use{from: comporta.InstantOf(time.Now()), units: 1}
								d, err := s.TakeOne(t.Context(), key, rule, 1)
								u.to = comporta.InstantOf(time.Now())
								switch {
								case err != nil:
									t.Error(err)
									return
								case d.Allowed:
									mu.Lock()
									uses = append(uses, u)
									mu.Unlock()
								}
							}
						})
					}
					own.Wait()
					mu.Lock()
					defer mu.Unlock()
					served += s.Stats().Leases.Served
				})
			}
			all.Wait()
			checkBounds(t, rule, uses, 0)
			if served == 0 {
				t.Error("no unit was taken from a lease")
			}
			t.Logf("%d of %d from leases", served, len(uses))
		})
	}
}
