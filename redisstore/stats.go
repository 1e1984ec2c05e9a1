package redisstore

import (
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Stats are a store's numbers since it was made.
type Stats struct {
	// Calls were sent, of the script; Takes and Settlements went with them.
	Calls, Takes, Settlements int64
	// Remembered are requests that were denied without asking.
	Remembered int64
	// Leases are of limits with a lease.
	Leases LeaseStats
	// ClockFaults are keys whose time had stepped back by more than ten seconds.
	ClockFaults int64
	// Replaced are values that were found in keys and were no states.
	Replaced int64
	// Errors are the calls and heartbeats that failed, by cause: words from a fixed list.
	Errors map[string]int64
}

// A Status says how a store is.
type Status struct {
	// Up: calls go through. Since is when the store came up, or when the first call
	// of the outage failed.
	Up    bool
	Since time.Time
	// Cause is why not: "" while it is up, else a word from a fixed list, as timeout
	// or READONLY.
	Cause string
	// Instances share the store, as last known; at least 1.
	Instances int
}

// counters are what Stats are read from.
type counters struct {
	calls, takes, settlements, faults, replaced atomic.Int64
	remembered                                  spread

	mu     sync.Mutex
	errors map[string]int64
	told   map[string]int64 // when a cause was last logged, on the monotonic clock
	warned int64            // of replaced values, likewise
	since  time.Time        // up
}

// A spread is a counter that many processors add to: each mostly to a line of
// memory of its own.
type spread [16]struct {
	n atomic.Int64
	_ [56]byte
}

func (s *spread) add() { s[rand.Uint32()%uint32(len(s))].n.Add(1) }

func (s *spread) sum() (n int64) {
	for i := range s {
		n += s[i].n.Load()
	}
	return n
}

// Stats are the store's numbers.
func (s *Store) Stats() Stats {
	c := &s.counters
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{
		Calls: c.calls.Load(), Takes: c.takes.Load(), Settlements: c.settlements.Load(), Remembered: c.remembered.sum(),
		Leases:      s.leases.stats(),
		ClockFaults: c.faults.Load(), Replaced: c.replaced.Load(), Errors: maps.Clone(c.errors),
	}
}

// Status is how the store is now.
func (s *Store) Status() Status {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	st := Status{Up: true, Since: s.counters.since, Instances: s.Instances()}
	if down := s.breaker.state.Load(); down != nil {
		st.Up, st.Cause = false, down.cause
		st.Since = now().Add(-time.Duration(monotonic() - down.since))
	}
	return st
}

// carried counts what a call asked.
func (c *counters) carried(sent *call) {
	var takes, settlements int64
	for i := range sent.items {
		if it := &sent.items[i]; it.op == opSettle {
			settlements++
		} else {
			takes += int64(it.n * len(it.first.takes))
		}
	}
	c.takes.Add(takes)
	c.settlements.Add(settlements)
}

// failed counts a call that did, and tells of a cause that the breaker does not
// open for, and so is silent about, at most once a minute.
func (s *Store) failed(err error) {
	c, why := &s.counters, cause(err)
	c.wrong(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	last, before := c.told[why]
	if now := monotonic(); !troubles[why].down && (!before || now-last > int64(time.Minute)) {
		c.told[why] = now
		logRefused(s.logger, why, err)
	}
}

// wrong counts what failed, by its cause.
func (c *counters) wrong(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.errors == nil {
		c.errors, c.told = map[string]int64{}, map[string]int64{}
	}
	c.errors[cause(err)]++
}

// turned dates the store's coming up.
func (c *counters) turned() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = now()
}

// seen counts what the script says of a key beside its state.
func (s *Store) seen(flags byte) {
	if flags&clockFault != 0 {
		s.counters.faults.Add(1)
	}
	if flags&wasReplaced != 0 {
		s.counters.replaced.Add(1)
		s.warn()
	}
}

// warn tells of replaced values, at most every ten seconds.
func (s *Store) warn() {
	c := &s.counters
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := monotonic(); c.warned == 0 || now-c.warned > int64(10*time.Second) {
		c.warned = now
		s.logger.Warn("redisstore: values were found that are no states of limits, and replaced: does something else write keys with our prefix?",
			"prefix", s.prefix, "replaced", c.replaced.Load())
	}
}
