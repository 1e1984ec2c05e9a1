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
	terms *comporta.Lease // nil: none; else with all numbers written out
	keys  map[int]*account
	spent int64 // all that was ever spent
}

// account is one key: its state and its ledger.
type account struct {
	key
	ledger  map[int]entry // by instance; those whose time has come are gone
	lying   int64         // the units of all entries
	leaving []leaving     // in order of time
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

func newFleetStore(rule *comporta.Rule) *fleetStore {
	s := &fleetStore{rule: rule, keys: map[int]*account{}}
	if lease := rule.Limit().Lease; lease != nil {
		terms := lease.Filled()
		s.terms = &terms
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

// pass lets entries leave whose time has come.
func (a *account) pass(now comporta.Instant) {
	for len(a.leaving) > 0 && a.leaving[0].at <= now {
		if instance := a.leaving[0].instance; a.ledger[instance].ends <= now {
			a.lying -= a.ledger[instance].units
			delete(a.ledger, instance)
		}
		a.leaving = a.leaving[1:]
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
// gives units ahead: so few that what lies in leases stays within the share of a
// full budget, and within each instance's equal part of it, and that the same
// share of what remains is never passed.
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
	a.pass(now)
	if w.number <= a.ledger[w.instance].wish {
		return g // later wishes of the same instance overtook it, and it hears no answer
	}
	g.life = s.life(now)
	a.write(w.instance, entry{w.number, w.held, now + g.life})
	a.leaving = append(a.leaving, leaving{now + g.life, w.instance})
	most := s.terms.Most(s.rule.Full())
	part := max(1, most/int64(len(a.ledger))) - w.held
	units := min(w.ahead, most-a.lying, part, g.decided.Remaining*int64(s.terms.Share)/100)
	if units > 0 {
		g.ahead = a.take(s.rule, now, units).Receipt
		s.spent += units
		a.write(w.instance, entry{w.number, w.held + units, now + g.life})
	}
	return g
}

// life is how long units that are spent now may be used: a lease ends with its
// window. A bucket has none.
func (s *fleetStore) life(now comporta.Instant) comporta.Instant {
	life := instant(s.terms.TTL)
	if s.rule.Algorithm().Bucket() {
		return life
	}
	window := comporta.Instant(s.rule.Limit().Window / time.Microsecond)
	return min(life, (now/window+1)*window-now)
}

// giveBack takes back units of a lease that has ended. The ledger counts them
// until the next wish, or its own end.
func (s *fleetStore) giveBack(key int, ahead comporta.Receipt, unused int64, now comporta.Instant) {
	s.account(key).settle(s.rule, now, ahead, ahead.Cost-unused)
}
