package redisstore

import (
	"hash/maphash"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta"
)

// mostLeases is of how many keys units are held ahead, or the rate is measured
// that tells how many: the memory, some 500 bytes each, is bounded. Other keys
// are asked each time.
const mostLeases = 65_536

// leases are the units that this instance holds ahead, by key. A leased unit is
// spent in the store already, and whoever takes it here need not ask: that costs
// a lock of its shard, a look into a map and the step on a copy of the last known
// state. docs/leases.md says what is promised and why it holds. Safe for
// concurrent use.
type leases struct {
	store  *Store
	id     int64 // in ledgers: 48 bits by chance
	seed   maphash.Seed
	shards [shards]leaseShard
	size   atomic.Int64 // keys in all shards
	wishes atomic.Int64 // the number of the last
	ends   endings
	closed atomic.Bool
	// out counts what is on its way with nobody waiting. What is not counted begins
	// under a shard's lock, while closed is false.
	out sync.WaitGroup

	granted, leased, returned, lost atomic.Int64
}

type leaseShard struct {
	mu     sync.Mutex
	leases map[comporta.Key]*lease
	served int64
	_      [40]byte // two shards share no line of memory
}

// A lease is what is held of one key. Its shard's lock guards it.
type lease struct {
	key   comporta.Key
	rule  *comporta.Rule
	terms comporta.Lease
	gone  bool // not in the table any more

	batches []batch
	left    int64 // units, in all batches
	most    int64 // that were left when the store last answered
	ends    int64 // the first batch's
	due     int64 // when the goroutine will look; 0 is never
	renew   int64 // when the last batch is nearly over

	asking bool  // one wish is out at a time
	again  int64 // no wish before

	used  int64   // when units were last asked for
	seen  int64   // units asked for since the rate was measured
	since int64   // when that was
	rate  float64 // units a nanosecond

	// What the store last told: the state after the grant, the instant that counted
	// there, the decision of a peek, and when the reply came.
	cell    comporta.Cell
	at      comporta.Instant
	told    comporta.Decision
	replied int64
}

// A batch is one grant: units taken at one instant of the store's.
type batch struct {
	at   comporta.Instant
	left int64
	most int64 // that may be left: settles put units back up to it
	ends int64 // on the leases' clock; from then on none is used
}

func newLeases(s *Store) *leases {
	ls := &leases{store: s, id: rand.Int64N(1 << 48), seed: maphash.MakeSeed()}
	for i := range ls.shards {
		ls.shards[i].leases = map[comporta.Key]*lease{}
	}
	return ls
}

// now is the leases' clock, in nanoseconds: monotonic, or the tests'.
func (ls *leases) now() int64 {
	if ls.store.now != nil {
		return int64(ls.store.about(0)) * 1000
	}
	return monotonic()
}

func (ls *leases) shard(key *comporta.Key) *leaseShard {
	return &ls.shards[maphash.Comparable(ls.seed, *key)%shards]
}

// leasable says whether units for a take may lie here.
func leasable(t comporta.Take) bool {
	return t.Rule.Lease() != nil && !t.Shadow && t.Rule.Counting()
}

// take takes from what is at hand and tells the decision. It is false where that
// is not enough, and for peeks: then the store decides. Either way a wish for more
// may be put in line; where it is true it has gone out.
func (ls *leases) take(t *comporta.Take, out *comporta.Taken) bool {
	if t.Cost == 0 {
		return false
	}
	now := ls.now()
	s := ls.shard(&t.Key)
	s.mu.Lock()
	l := s.leases[t.Key]
	if l == nil {
		if l = ls.newLocked(s, t, now); l == nil {
			s.mu.Unlock()
			return false
		}
	}
	if l.rule != t.Rule {
		ls.changeLocked(l, t.Rule)
	}
	if now >= l.ends {
		ls.endLocked(l, now)
	}
	l.used = now
	l.seen += t.Cost
	b := l.useLocked(t.Cost)
	if b != nil {
		s.served++
		l.tellLocked(now, out)
		out.Receipt = comporta.Receipt{At: b.at, Cost: t.Cost}
	}
	wish := ls.wishLocked(l, now)
	s.mu.Unlock()
	if wish != nil {
		lane, slot := ls.store.laneOf(t.Key.Identity)
		wish.slot = slot
		lane.put(wish)
		if b != nil {
			lane.flush()
		}
	}
	return b != nil
}

func (ls *leases) newLocked(s *leaseShard, t *comporta.Take, now int64) *lease {
	if ls.closed.Load() {
		return nil
	}
	if ls.size.Add(1) > mostLeases {
		ls.size.Add(-1)
		return nil
	}
	l := &lease{key: owned(t.Key), rule: t.Rule, terms: *t.Rule.Lease(), since: now, used: now, ends: math.MaxInt64}
	s.leases[l.key] = l
	ls.lookLocked(l, now+int64(l.terms.TTL))
	return l
}

// owned is a key in memory of its own: the caller's may be written over.
func owned(k comporta.Key) comporta.Key {
	return comporta.Key{Limit: strings.Clone(k.Limit), Identity: strings.Clone(k.Identity)}
}

// useLocked takes units from one batch: a receipt names one instant.
func (l *lease) useLocked(cost int64) *batch {
	for i := range l.batches {
		if b := &l.batches[i]; b.left >= cost {
			b.left -= cost
			l.left -= cost
			return b
		}
	}
	return nil
}

// tellLocked is a peek at the key as it is for this instance: the last known state
// by now, in which what is still at hand is not spent. What others have taken
// since then it cannot know.
func (l *lease) tellLocked(now int64, out *comporta.Taken) {
	passed := time.Duration(max(0, now-l.replied))
	if l.rule.Algorithm() == comporta.SlidingLog { // its entries are in the store
		*out = comporta.Taken{Decision: l.told}
		shift(&out.Decision, passed)
		out.Remaining = min(out.Limit, out.Remaining+l.left)
		return
	}
	cell, at := l.cell, l.at.Add(passed)
	if l.left > 0 {
		l.rule.Settle(&cell, at, comporta.Receipt{At: l.at, Cost: l.left}, 0)
	}
	l.rule.Advance(&cell, at, 0, out)
}

// putBack undoes a take that another limit of the request denied.
func (ls *leases) putBack(t *comporta.Take, out *comporta.Taken) {
	now := ls.now()
	s := ls.shard(&t.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := out.Receipt
	s.served--
	if l := s.leases[t.Key]; l != nil && ls.restoreLocked(l, taken.At, taken.Cost, now) {
		l.tellLocked(now, out)
		return
	}
	ls.giveBackLocked(owned(t.Key), t.Rule, batch{at: taken.At, left: taken.Cost})
	out.Remaining = min(out.Limit, out.Remaining+taken.Cost)
	out.Receipt = comporta.Receipt{}
}

// restoreLocked puts units back into the batch that they are from, unless it has
// ended or would hold more than the store thinks.
func (ls *leases) restoreLocked(l *lease, at comporta.Instant, units, now int64) bool {
	for i := range l.batches {
		if b := &l.batches[i]; b.at == at && now < b.ends && units <= b.most-b.left {
			b.left += units
			l.left += units
			return true
		}
	}
	return false
}

// settle settles a take to less within its lease, where that is still at hand.
func (ls *leases) settle(st *comporta.Settlement, out *comporta.Taken) bool {
	if st.Rule.Lease() == nil || st.Actual > st.Taken.Cost {
		return false
	}
	now := ls.now()
	s := ls.shard(&st.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[st.Key]
	if l == nil || l.rule != st.Rule || !ls.restoreLocked(l, st.Taken.At, st.Taken.Cost-st.Actual, now) {
		return false
	}
	l.tellLocked(now, out)
	return true
}

// held is how many units of a key are at hand.
func (ls *leases) held(key *comporta.Key) int64 {
	now := ls.now()
	s := ls.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[*key]
	if l == nil {
		return 0
	}
	var n int64
	for i := range l.batches {
		if now < l.batches[i].ends {
			n += l.batches[i].left
		}
	}
	return n
}

// changeLocked goes on under another rule. What was leased under other numbers or
// terms goes back.
func (ls *leases) changeLocked(l *lease, rule *comporta.Rule) {
	terms := *rule.Lease()
	same := l.rule.Same(rule) && l.terms == terms
	l.rule, l.terms = rule, terms
	if !same {
		ls.dropLocked(l)
		l.rate, l.seen = 0, 0
	}
}
