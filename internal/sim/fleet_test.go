package sim

import (
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func ride(t interface {
	Helper()
	Fatal(...any)
}, f Fleet) *FleetReport {
	t.Helper()
	report, err := f.Run()
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// share is what may lie in the leases of one key.
func (f Fleet) share() int64 { return f.Limit.Lease.Most(f.Limit.Limit) }

// fleets are small, and hard pressed: traffic around the limit in sudden waves,
// leases of all kinds, clocks that are wrong, replies that come late, instances
// that die. A call without a reply is a refusal.
func fleets(t *rapid.T) Fleet {
	limit := comporta.Limit{
		Algorithm: rapid.SampledFrom([]comporta.Algorithm{comporta.TokenBucket, comporta.FixedWindow, comporta.SlidingCounter, comporta.SlidingLog}).Draw(t, "algorithm"),
		Limit:     rapid.Int64Range(1, 2_000).Draw(t, "limit"),
		Window:    rapid.SampledFrom([]time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second, time.Minute}).Draw(t, "window"),
		Lease: &comporta.Lease{
			Size:  rapid.SampledFrom([]int64{0, 0, 2, 10, 1000}).Draw(t, "size"),
			TTL:   rapid.SampledFrom([]time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second}).Draw(t, "ttl"),
			Share: rapid.IntRange(1, 50).Draw(t, "share"),
		},
	}
	f := Fleet{
		Limit:     limit,
		Instances: rapid.IntRange(1, 40).Draw(t, "instances"),
		Keys:      rapid.SampledFrom([]int{1, 1, 5}).Draw(t, "keys"),
		Uneven:    rapid.Bool().Draw(t, "uneven"),
		Late:      rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "late"),
		Skew:      time.Hour,
		Drift:     900,
		OnError:   Deny,
		Seed:      rapid.Uint64().Draw(t, "seed"),
	}
	for range rapid.IntRange(1, 4).Draw(t, "phases") {
		f.Load = append(f.Load, Phase{
			For:  rapid.SampledFrom([]time.Duration{100 * time.Millisecond, 700 * time.Millisecond, 2 * time.Second}).Draw(t, "for"),
			Rate: rapid.SampledFrom([]float64{0, 100, 1_000, 4_000}).Draw(t, "rate"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "deaths") {
		f.Faults = append(f.Faults, Fault{At: rapid.SampledFrom([]time.Duration{300 * time.Millisecond, time.Second}).Draw(t, "dies"), Die: rapid.IntRange(1, 10).Draw(t, "dead")})
	}
	return f
}

// The bound of leases is hard, whatever comes when: what lies in leases stays
// within the share, no window counted from the epoch holds more than its limit,
// and no other window, nor any of a bucket's, more than that and what lay in leases.
func TestLeasesKeepTheirBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleets(t)
		r := ride(t, f)
		switch {
		case r.Lying > f.share():
			t.Fatalf("%d lie in leases, the share is %d: %+v", r.Lying, f.share(), r)
		case r.OverAligned > 0 && !f.Limit.Algorithm.Bucket():
			t.Fatalf("a window holds %d too many: %+v", r.OverAligned, r)
		case r.Over > r.Lying || f.Limit.Algorithm == comporta.FixedWindow && r.Over > 0:
			t.Fatalf("a window holds %d too many: %+v", r.Over, r)
		}
	})
}

// A failover that forgets lets the forgotten go on once more, and no others.
func TestFailoverAdmitsAgainWhatItForgot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleets(t)
		f.Faults = append(f.Faults, Fault{At: rapid.SampledFrom([]time.Duration{200 * time.Millisecond, 800 * time.Millisecond}).Draw(t, "failover"), Forget: rapid.SampledFrom([]time.Duration{10 * time.Millisecond, 150 * time.Millisecond}).Draw(t, "forget")})
		if r := ride(t, f); r.Over > f.share()+r.Forgotten || r.OverAligned > r.Forgotten && !f.Limit.Algorithm.Bucket() {
			t.Fatalf("a window holds %d too many, an aligned one %d: %+v", r.Over, r.OverAligned, r)
		}
	})
}

// While the store is away each instance lets no more go on than its part of the
// limit does; the calls of the breaker's beginning and end are reckoned with.
func TestAnUnreachableStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleets(t)
		f.Keys, f.Late = 1, 0
		f.OnError = rapid.SampledFrom([]OnError{Local, Deny, Allow}).Draw(t, "on_error")
		away := rapid.SampledFrom([]time.Duration{30 * time.Millisecond, 400 * time.Millisecond}).Draw(t, "away")
		f.Faults = []Fault{{At: 300 * time.Millisecond, Unreachable: away}}
		r := ride(t, f)
		if r.Over > f.share()+r.Locally || r.OverAligned > r.Locally && !f.Limit.Algorithm.Bucket() {
			t.Fatalf("a window holds %d too many, an aligned one %d: %+v", r.Over, r.OverAligned, r)
		}
		most := int64(f.Instances) * LocalRule(f.Limit, f.Instances).Bound(away+probeEvery+2*50*time.Millisecond)
		if f.OnError == Deny && r.Locally > 0 || f.OnError == Local && r.Locally > most {
			t.Fatalf("%d went on locally, at most %d: %+v", r.Locally, most, r)
		}
	})
}

// busy is a fleet at 80 % of its limit.
func busy() Fleet {
	return Fleet{
		Limit:     comporta.Limit{Algorithm: comporta.SlidingLog, Limit: 2_000, Window: time.Second, Lease: &comporta.Lease{}},
		Instances: 20,
		Load:      []Phase{{3 * time.Second, 1_600}},
	}
}

// Wall clocks decide nothing, and chance comes from the seed alone.
func TestWrongWallClocksChangeNothing(t *testing.T) {
	wrong := busy()
	wrong.Skew = 24 * time.Hour
	if diff := cmp.Diff(ride(t, busy()), ride(t, wrong)); diff != "" {
		t.Error(diff)
	}
}

// A lease ends by a monotonic clock a thousandth early: a clock that runs slow by as
// much does not make it longer.
func TestALeaseEndsInTimeByASlowClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := &instance{fleet: &fleet{}, skew: instant(time.Hour), drift: -rapid.Int64Range(0, 1_000).Draw(t, "drift")}
		i.now = comporta.Instant(rapid.Int64Range(0, 1e11).Draw(t, "sent"))
		life := comporta.Instant(rapid.Int64Range(1, 60e6).Draw(t, "life"))
		if end := i.when(i.clock() + guarded(life)); end > i.now+life {
			t.Fatalf("it ends %d µs late", end-i.now-life)
		}
	})
}

// By a clock that is slower than that, leases are used for longer, and what the
// store gives to others meanwhile comes on top: here a fifth, and a pause after
// which the store holds leases for ended that the slow still use.
func TestAVerySlowClockHoldsItsLeasesTooLong(t *testing.T) {
	f := busy()
	f.Limit.Limit, f.Limit.Window = 20_000, time.Minute
	f.Limit.Lease.Size = 200 // ten of the twenty instances take all of the share
	f.Load = []Phase{{500 * time.Millisecond, 1_000}, {600 * time.Millisecond, 0}, {100 * time.Millisecond, 2_000}}
	f.Drift = 200_000
	if r := ride(t, f); r.Lying <= f.share() || r.Lying > 2*f.share() {
		t.Errorf("%d lie in leases, the share is %d", r.Lying, f.share())
	}
}

// A breaker that opens is no new burst: each instance begins with its part of what
// remained when it last asked.
func TestLocalCountingStartsFromWhatWasKnown(t *testing.T) {
	f := busy()
	f.Limit = comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 1_000, Window: time.Minute}
	f.Load = []Phase{{time.Second, 900}, {2 * time.Second, 2_000}}
	f.Faults = []Fault{{At: time.Second, Unreachable: time.Minute}}
	if r := ride(t, f); r.Over > 0 || r.OverAligned > f.Limit.Limit/20 || r.Locally < 50 {
		t.Errorf("%+v", r)
	}
}

// An instance that dies takes what it held along: no more than the share, and
// only until it would have refilled.
func TestADeadInstanceLosesWhatItHeld(t *testing.T) {
	f := busy()
	f.Faults = []Fault{{At: time.Second + 500*time.Millisecond, Die: 10}}
	r := ride(t, f)
	if r.Lost == 0 || r.Lost > f.Limit.Limit/10 {
		t.Errorf("lost %d: %+v", r.Lost, r)
	}
	if r.Over > 0 || r.OverAligned > 0 {
		t.Errorf("too many: %+v", r)
	}
}

// The breaker closes again, and calls go on.
func TestTheStoreIsAskedAgainWhenItIsBack(t *testing.T) {
	f := busy()
	f.Faults = []Fault{{At: time.Second, Unreachable: time.Second}}
	away := ride(t, f)
	f.Faults = []Fault{{At: time.Second, Unreachable: 3 * time.Second}}
	longer := ride(t, f)
	if away.Locally == 0 || longer.Locally < away.Locally+1_000 {
		t.Errorf("%d locally in 1 s, %d in 2 s", away.Locally, longer.Locally)
	}
}

// Where there is plenty, leases refuse nothing and save nearly all calls.
func TestLeasesSaveCalls(t *testing.T) {
	f := Fleet{Limit: comporta.Limit{Limit: 6_000_000, Window: time.Minute}, Instances: 10, Load: []Phase{{2 * time.Second, 20_000}}}
	without := ride(t, f)
	f.Limit.Lease = &comporta.Lease{}
	with := ride(t, f)
	if with.Admitted != with.Ideal || with.Early > 0 || 10*with.Calls > without.Calls {
		t.Errorf("with %+v\nwithout %+v", with, without)
	}
}

func TestFleetsThatAreNotSimulated(t *testing.T) {
	for name, f := range map[string]Fleet{
		"no instance": {Limit: comporta.Limit{Limit: 1, Window: time.Second}},
		"no limit":    {Instances: 1},
		"a queue":     {Instances: 1, Limit: comporta.Limit{Limit: 1, Window: time.Second, Algorithm: comporta.LeakyBucket}},
		"a quota":     {Instances: 1, Limit: comporta.Limit{Limit: 1, Algorithm: comporta.FixedWindow, Calendar: &comporta.Calendar{}}},
		"unlimited":   {Instances: 1, Limit: comporta.Limit{Unlimited: true}},
	} {
		if _, err := f.Run(); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}
