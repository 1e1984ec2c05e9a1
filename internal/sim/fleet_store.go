package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/comporta/comporta"
)

// fleetStore is the store of a fleet: the real rule on the store's clock and, for
// each key, a ledger of who holds how much of it ahead.
type fleetStore struct {
	rule  *comporta.Rule
	terms *LeaseTerms
	share int64 // of a full budget, in units: what may lie in leases
	keys  map[int]*account
	spent int64 // all that was ever spent
}

// account is one key: its state and its ledger.
type account struct {
	key
	ledger    map[int]entry    // the instances that have asked in the last ttl
	lying     int64            // the units of all entries
	leaving   []leaving        // in order of time
	windowEnd comporta.Instant // of the leases; none passes it
}

// entry is what an instance holds as far as the store knows: never less than it does.
type entry struct {
	wish  int // the number of the wish that made it
	units int64
	ends  comporta.Instant
}

type leaving struct {
	at       comporta.Instant
	instance int
}

func newFleetStore(rule *comporta.Rule, terms *LeaseTerms) *fleetStore {
	s := &fleetStore{rule: rule, terms: terms, keys: map[int]*account{}}
	if terms != nil {
		s.share = rule.Full() * terms.Share / 100
	}
	return s
}

// clone is a store that goes on by itself.
func (s *fleetStore) clone() fleetStore {
	c := *s
	c.keys = make(map[int]*account, len(s.keys))
	for name, a := range s.keys {
		own := *a
		own.entries = slices.Clone(a.entries)
		own.ledger = maps.Clone(a.ledger)
		own.leaving = slices.Clone(a.leaving)
		c.keys[name] = &own
	}
	return c
}

func (s *fleetStore) account(key int) *account {
	a := s.keys[key]
	if a == nil {
		a = &account{ledger: map[int]entry{}}
		s.keys[key] = a
	}
	return a
}

// pass lets time pass in the ledger: entries leave a ttl after they were made,
// and in a new window nothing lies in leases.
func (s *fleetStore) pass(a *account, now comporta.Instant) {
	for len(a.leaving) > 0 && a.leaving[0].at <= now {
		if instance := a.leaving[0].instance; a.ledger[instance].ends <= now {
			a.lying -= a.ledger[instance].units
			delete(a.ledger, instance)
		}
		a.leaving = a.leaving[1:]
	}
	window := comporta.Instant(s.rule.Limit().Window / time.Microsecond)
	if end := (now/window + 1) * window; end != a.windowEnd {
		a.windowEnd, a.lying = end, 0
		for instance, e := range a.ledger {
			e.units = 0
			a.ledger[instance] = e
		}
	}
}

func (a *account) write(instance int, e entry) {
	a.lying += e.units - a.ledger[instance].units
	a.ledger[instance] = e
}

// A wish is what an instance asks of a key: a decision on each request that
// waits, and units ahead.
type wish struct {
	instance, key int
	number        int   // rises with each wish of the instance for the key
	waiting       int64 // requests to decide now
	ahead         int64 // units wanted beside them
	held          int64 // units still held ahead
}

// A grant is the answer to a wish.
type grant struct {
	allowed int64 // of those that wait
	decided comporta.Decision
	ahead   comporta.Receipt // its cost is the units leased
	life    comporta.Instant // how long they may be used, counted from when the wish was sent
}

// ask decides on the requests that wait, as if there were no leases, and then
// gives units ahead: no more than leave what lies in leases within the share of a
// full budget, this instance's within an equal part of it for each that has
// asked in the last ttl, and within that share of what remains.
func (s *fleetStore) ask(w wish, now comporta.Instant) (g grant) {
	a := s.account(w.key)
	g.decided = a.take(s.rule, now, 0).Decision
	g.allowed = min(w.waiting, g.decided.Remaining)
	if g.allowed > 0 {
		g.decided = a.take(s.rule, now, g.allowed).Decision
		s.spent += g.allowed
	}
	if g.allowed < w.waiting {
		g.decided = a.take(s.rule, now, 1).Decision // denied: when to ask again
	}
	if s.terms == nil {
		return g
	}
	s.pass(a, now)
	if w.number <= a.ledger[w.instance].wish {
		return g // later wishes of the same instance overtook it, and it hears no answer
	}
	ttl := instant(s.terms.TTL)
	g.life = min(ttl, a.windowEnd-now)
	a.write(w.instance, entry{w.number, w.held, now + ttl})
	a.leaving = append(a.leaving, leaving{now + ttl, w.instance})
	part := max(1, s.share/int64(len(a.ledger))) - w.held
	units := min(w.ahead, s.share-a.lying, part, g.decided.Remaining*s.terms.Share/100)
	if units > 0 {
		g.ahead = a.take(s.rule, now, units).Receipt
		s.spent += units
		a.write(w.instance, entry{w.number, w.held + units, now + ttl})
	}
	return g
}

// giveBack takes back units of a lease that has ended. The wish is the last
// that the instance had sent before.
func (s *fleetStore) giveBack(instance, key, wish int, ahead comporta.Receipt, unused int64, now comporta.Instant) {
	a := s.account(key)
	a.settle(s.rule, now, ahead, ahead.Cost-unused)
	s.pass(a, now)
	if e, ok := a.ledger[instance]; ok && e.wish <= wish { // a later wish left them out already
		a.write(instance, entry{e.wish, max(0, e.units-unused), e.ends})
	}
}
