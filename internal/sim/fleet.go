package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/comporta/comporta"
)

// A Fleet is what is simulated on paper where machines are too few: up to
// thousands of instances that share one limit, held in one store, with leases,
// clocks that disagree, and failures. The rule is the real one; instances, network
// and faults are modelled, all on one virtual clock. Equal fleets give equal
// reports: chance comes from Seed alone.
type Fleet struct {
	// Limit is leased as its Lease says; without one each decision is asked of the store.
	Limit     comporta.Limit
	Instances int
	// Keys is the number of clients, drawn by Zipf's law with exponent 1.1; 0 is one
	// hot key.
	Keys int
	// Load is what arrives in all, as a Poisson process, one phase after another.
	Load []Phase
	// Uneven gives few instances most of the traffic (Zipf's law over instances);
	// else each gets as much as any other.
	Uneven bool
	// Latency is one way to the store: as much again is added by chance, evenly.
	// 0 is 250 µs.
	Latency time.Duration
	// Late is the part of messages, of 1, that take up to a tenth of a second longer,
	// so that others overtake them.
	Late float64
	// Skew is by how much wall clocks are wrong, at most, in either direction.
	Skew time.Duration
	// Drift is by how much monotonic clocks run fast or slow, at most, in parts per
	// million; at most half a million.
	Drift int64
	// Timeout is the deadline of a call; 0 is 50 ms.
	Timeout time.Duration
	OnError OnError
	Faults  []Fault
	Seed    uint64
}

// A Phase is a stretch of time with so many requests a second.
type Phase struct {
	For  time.Duration
	Rate float64
}

// OnError is what decides while the store cannot be reached.
type OnError uint8

const (
	// Local counts alone, against the limit divided by the instances.
	Local OnError = iota
	Deny
	Allow
)

// A Fault happens at a time; the one field that is set says what.
type Fault struct {
	At time.Duration
	// Die ends so many instances, with what they hold. Their clients go to others.
	Die int
	// Unreachable is how long no call reaches the store, nor a reply an instance.
	Unreachable time.Duration
	// Forget is a failover: the store is what it was so long before.
	Forget time.Duration
}

// A FleetReport is what came of a fleet.
type FleetReport struct {
	Requests int64
	// Admitted are those that went on; Locally, how many of them while the store was
	// unreachable, by Fleet.OnError.
	Admitted, Locally int64
	// Ideal is how many one limiter, without a network, admits of the same requests.
	Ideal int64
	// Early are refusals of requests that the rule would have admitted, charged with
	// nothing but what went on until then.
	Early int64
	// Over is the most units by which any window of any key exceeded what the rule
	// promises of it ([comporta.Rule.Bound]); for a token bucket windows of every
	// length count, else those of the limit's window. OverAligned is the same for
	// windows counted from the epoch. 0 is none.
	Over, OverAligned int64
	// Calls are the round trips to the store, probes and returned units included.
	Calls int64
	// Leased are the units taken ahead; Lying is the most of one key that were
	// so at any moment; Returned went back unused, and Lost neither went back nor
	// were used, or were spent by a call whose reply nobody heard.
	Leased, Lying, Returned, Lost int64
	// Forgotten are the units whose spending a failover forgot.
	Forgotten int64
}

// CallsPerRequest are the round trips for each decision.
func (r *FleetReport) CallsPerRequest() float64 {
	return float64(r.Calls) / float64(max(r.Requests, 1))
}

const (
	breakerFails = 5 // calls in a row, until the breaker opens
	probeEvery   = 200 * time.Millisecond
	rememberFor  = time.Second // a denial, at most
	longestLate  = 100 * time.Millisecond
)

// fleet is a Fleet as it runs.
type fleet struct {
	Fleet
	schedule
	rule      *comporta.Rule
	chance    *rand.Rand
	store     *fleetStore
	oracle    oracle
	instances []*instance
	alive     int
	locals    map[int]*comporta.Rule // for so many instances
	FleetReport
}

// Run simulates the fleet. It costs some 0.3 µs a request and 1 µs a call; under a
// sliding log each also costs time in proportion to the log. The error is that
// of a limit that does not compile or goes without leases.
func (f Fleet) Run() (*FleetReport, error) {
	f.Latency = defaulted(f.Latency, 250*time.Microsecond)
	f.Timeout = defaulted(f.Timeout, 50*time.Millisecond)
	f.Keys = defaulted(f.Keys, 1)
	rule, err := f.Limit.Compile()
	switch {
	case err != nil:
		return nil, err
	case f.Limit.Calendar != nil || f.Limit.Unlimited || f.Limit.Stagger || rule.Algorithm() == comporta.LeakyBucket:
		return nil, fmt.Errorf("a fleet is not simulated under %v %v: take a limit with a window of its own, that delays nothing", rule.Algorithm(), f.Limit)
	case f.Instances < 1:
		return nil, fmt.Errorf("a fleet of %d instances: it is at least 1", f.Instances)
	case f.Drift < 0 || f.Drift > 500_000:
		return nil, fmt.Errorf("a drift of %d parts per million is out of range: from 0 to 500,000", f.Drift)
	}
	run := &fleet{Fleet: f, rule: rule, alive: f.Instances, locals: map[int]*comporta.Rule{},
		chance: rand.New(rand.NewPCG(f.Seed, 0)), store: newFleetStore(rule), oracle: newOracle(rule)}
	for i := range f.Instances {
		run.instances = append(run.instances, run.newInstance(i))
	}
	run.plan()
	run.arrive()
	report := run.FleetReport
	report.Over, report.OverAligned = run.oracle.over, run.oracle.overAligned
	report.Ideal, report.Early = run.oracle.ideal, run.oracle.early
	report.Lying = run.oracle.mostLying
	return &report, nil
}

func defaulted[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// plan puts the faults on the schedule.
func (f *fleet) plan() {
	for _, fault := range f.Faults {
		at := instant(fault.At)
		switch {
		case fault.Die > 0:
			f.at(at, func() { f.die(fault.Die) })
		case fault.Forget > 0:
			var before fleetStore
			f.at(at-instant(fault.Forget), func() { before = f.store.clone() })
			f.at(at, func() {
				f.Forgotten += f.store.spent - before.spent
				*f.store = before
			})
		}
	}
}

// reachable says whether a message gets through at an instant.
func (f *fleet) reachable(at comporta.Instant) bool {
	for _, fault := range f.Faults {
		if start := instant(fault.At); start <= at && at < start+instant(fault.Unreachable) {
			return false
		}
	}
	return true
}

// die ends the first so many of the living, but for the last of all.
func (f *fleet) die(n int) {
	for _, i := range f.instances {
		if n > 0 && f.alive > 1 && i.alive {
			i.die()
			n--
			f.alive--
		}
	}
}

// arrive lets the load come, and everything else happen meanwhile, until nothing
// is left to do.
func (f *fleet) arrive() {
	clients := rand.NewZipf(f.chance, 1.1, 1, uint64(f.Keys-1))
	spread := rand.NewZipf(f.chance, 1.2, 1, uint64(f.Instances-1))
	next, end := 0.0, 0.0
	for _, phase := range f.Load {
		next = end
		end += float64(phase.For.Microseconds())
		for phase.Rate > 0 {
			if next += f.chance.ExpFloat64() * 1e6 / phase.Rate; next >= end {
				break
			}
			f.runUntil(comporta.Instant(next))
			which := f.chance.IntN(f.Instances)
			if f.Uneven {
				which = int(spread.Uint64())
			}
			key := 0
			if f.Keys > 1 {
				key = int(clients.Uint64())
			}
			for !f.instances[which].alive {
				which = (which + 1) % f.Instances
			}
			f.Requests++
			f.oracle.arrive(key, f.now)
			f.instances[which].request(key)
		}
		f.runUntil(comporta.Instant(end))
	}
	f.runUntil(comporta.Instant(end) + instant(time.Hour))
}

// trip is how long a message takes, one way.
func (f *fleet) trip() comporta.Instant {
	least := instant(f.Latency)
	trip := least + comporta.Instant(f.chance.Int64N(int64(least)+1))
	if f.Late > 0 && f.chance.Float64() < f.Late {
		trip += comporta.Instant(f.chance.Int64N(int64(instant(longestLate))))
	}
	return trip
}

// local is the rule that each of so many instances counts by alone.
func (f *fleet) local(live int) *comporta.Rule {
	rule := f.locals[live]
	if rule == nil {
		rule = LocalRule(f.Limit, live)
		f.locals[live] = rule
	}
	return rule
}

// LocalRule is a limit divided by the instances, rounded up.
func LocalRule(limit comporta.Limit, live int) *comporta.Rule {
	part := func(n int64) int64 { return (n + int64(live) - 1) / int64(live) }
	limit.Limit, limit.Burst, limit.Lease = part(limit.Limit), part(limit.Burst), nil
	rule, err := limit.Compile()
	if err != nil {
		panic(err) // a part of a limit in range is in range
	}
	return rule
}
