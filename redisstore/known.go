package redisstore

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta"
)

// remembers is for how long a denial is remembered at most.
const remembers = time.Second

const (
	ways   = 4  // answers in a set
	shards = 64 // locks
)

// known holds the last answer about each of a bounded number of keys. It has two
// uses: a key that is denied until some instant need not be asked about before
// it, and when the store fails, local counting starts from what was last known.
//
// Keys are kept as 128 bits of two seeded hashes, never as text. Answers lie in
// sets of four; a new key takes the place of the one of its set that was used
// least recently. A shard, of 64, gets its memory (128 bytes a key) with its first
// key, and has a lock of its own. Safe for concurrent use.
//
// Instants are nanoseconds of one monotonic clock, from 1 up.
type known struct {
	seeds  [2]maphash.Seed
	sets   uint64 // of a shard: a power of two
	shards [shards]knownShard
	// notices are some of the denials that hold, each where its key's hash says, to
	// be found without a lock: what an attack asks for, it asks for on all processors
	// at once.
	notices []atomic.Pointer[notice]
}

// A notice is a denial that is not written to any more.
type notice struct {
	tag  uint64
	used *atomic.Int64
	answer
}

type knownShard struct {
	mu   sync.RWMutex
	sets []knownSet
	_    [16]byte // two shards share no line of memory
}

// A knownSet begins with all that a search reads, a line of memory.
type knownSet struct {
	tags    [ways]uint64       // one hash of each key; 0 is a free place
	used    [ways]atomic.Int64 // about when it was last noted or told
	answers [ways]answer
}

// An answer is a decision with all that says whether it still holds.
type answer struct {
	check    uint64         // the other hash
	rule     *comporta.Rule // nil where the key was reset since
	cost     int64
	replied  int64
	until    int64 // before which the denial holds; 0 where there is none
	settled  int64 // no denial sent before it holds: a take was allowed since
	decision comporta.Decision
	_        [8]byte // a set is whole lines of memory
}

// newKnown is a table of at least so many keys, rounded up to a power of two.
func newKnown(keys int) *known {
	sets := max(1, (keys+ways*shards-1)/(ways*shards))
	return &known{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		sets:  1 << bits.Len(uint(sets-1)),
		// A power of two, an eighth of the keys.
		notices: make([]atomic.Pointer[notice], 1<<bits.Len(uint(keys/16))),
	}
}

// place is where a key belongs.
type place struct {
	shard      *knownShard
	set        uint64
	tag, check uint64
}

func (k *known) place(key *comporta.Key) place {
	h := maphash.Comparable(k.seeds[0], *key)
	return place{
		shard: &k.shards[h%shards],
		set:   h / shards & (k.sets - 1),
		tag:   h | 1, // never 0; the lowest bit chose the shard
		check: maphash.Comparable(k.seeds[1], *key),
	}
}

// findLocked is a key's answer and when it was used, nil where it has none.
func (p *place) findLocked() (*answer, *atomic.Int64) {
	if p.shard.sets == nil {
		return nil, nil
	}
	s := &p.shard.sets[p.set]
	for i := range ways {
		if s.tags[i] == p.tag && s.answers[i].check == p.check {
			return &s.answers[i], &s.used[i]
		}
	}
	return nil, nil
}

// roomLocked is the key's answer, or a place for it.
func (p *place) roomLocked(sets uint64) (*answer, *atomic.Int64) {
	if a, used := p.findLocked(); a != nil {
		return a, used
	}
	return p.oldestLocked(sets)
}

// publishLocked shows a key's denial to those who look without a lock, or takes it
// from them; a is nil where there is no answer.
func (k *known) publishLocked(p *place, a *answer, used *atomic.Int64) {
	at := k.published(p)
	if a != nil && a.until > 0 {
		at.Store(&notice{p.tag, used, *a})
	} else if d := at.Load(); d.of(p) {
		at.CompareAndSwap(d, nil)
	}
}

// published is where a key's denial would be.
func (k *known) published(p *place) *atomic.Pointer[notice] {
	return &k.notices[p.check&uint64(len(k.notices)-1)]
}

// of says whether the notice is of a key.
func (d *notice) of(p *place) bool { return d != nil && d.tag == p.tag && d.check == p.check }

// touch notes that an answer is used, now and then: a key that many ask for at
// once is read, not written.
func touch(used *atomic.Int64, now int64) {
	if now-used.Load() > int64(10*time.Microsecond) {
		used.Store(now)
	}
}

// oldestLocked empties the place of a set that was used least recently.
func (p *place) oldestLocked(sets uint64) (*answer, *atomic.Int64) {
	if p.shard.sets == nil {
		p.shard.sets = make([]knownSet, sets)
	}
	s := &p.shard.sets[p.set]
	oldest := 0
	for i := range ways {
		if s.used[i].Load() < s.used[oldest].Load() {
			oldest = i
		}
	}
	s.tags[oldest] = p.tag
	s.answers[oldest] = answer{check: p.check}
	return &s.answers[oldest], &s.used[oldest]
}

// note keeps what the store answered to a take that was sent and replied to at
// these instants. A denial is remembered unless the rule charges attempts, or
// another take or settle of the key was replied to since it was sent: then it may
// be from before.
func (k *known) note(key *comporta.Key, rule *comporta.Rule, cost int64, d *comporta.Decision, sent, replied int64) {
	p := k.place(key)
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	a, used := p.roomLocked(k.sets)
	a.rule, a.cost, a.replied, a.until, a.decision = rule, cost, replied, 0, *d
	used.Store(replied)
	switch {
	case d.Allowed:
		a.settled = max(a.settled, replied)
	case sent >= a.settled && rule.Limit().Charge != comporta.Attempts:
		a.until = sent + int64(holds(rule, d))
	}
	k.publishLocked(&p, a, used)
}

// holds is for how long a denial stays true in all that it tells. Of a limit with
// leases it is no longer than a lease: units that lie in one then go back.
func holds(rule *comporta.Rule, d *comporta.Decision) time.Duration {
	most := remembers
	if lease := rule.Lease(); lease != nil {
		most = min(most, lease.TTL)
	}
	if d.ResetAfter == 0 { // a full budget, which never allows this cost
		return min(d.RetryAfter, most)
	}
	return min(d.RetryAfter, d.ResetAfter, most)
}

// drop forgets that a key is denied, and any such answer that is still on its
// way: a settle may have given units back.
func (k *known) drop(key *comporta.Key, now int64) {
	p := k.place(key)
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	a, used := p.findLocked()
	if a != nil {
		a.until, a.settled = 0, now
	}
	k.publishLocked(&p, a, used)
}

// denied is the decision on a take that need not be sent, as a denial of this
// key at the same or a smaller cost still holds.
func (k *known) denied(key *comporta.Key, rule *comporta.Rule, cost, now int64) (d comporta.Decision, ok bool) {
	p := k.place(key)
	if held := k.published(&p).Load(); held.of(&p) && held.denies(rule, cost, now) {
		touch(held.used, now)
		held.denial(&d, cost, now)
		return d, true
	}
	p.shard.mu.RLock()
	defer p.shard.mu.RUnlock()
	a, used := p.findLocked()
	if a == nil || !a.denies(rule, cost, now) {
		return d, false
	}
	touch(used, now)
	a.denial(&d, cost, now)
	return d, true
}

// last is the last decision about a key, as it was then, and how long ago the
// store told it.
func (k *known) last(key *comporta.Key, now int64) (d comporta.Decision, age time.Duration, ok bool) {
	p := k.place(key)
	p.shard.mu.RLock()
	defer p.shard.mu.RUnlock()
	a, _ := p.findLocked()
	if a == nil || a.rule == nil {
		return comporta.Decision{}, 0, false
	}
	return a.decision, a.age(now), true
}

// answer fills in the decisions on a request under several limits, if it need
// not be sent: an enforced limit is known to deny it, and what the others would
// say is known too, from less than a second ago. They say it as peeks do, for
// nothing is charged.
func (k *known) answer(takes []comporta.Take, out []comporta.Taken, now int64) bool {
	denied := false
	for i := range takes {
		t := &takes[i]
		d := comporta.Taken{}
		if !k.wouldSay(t, now, &d.Decision) {
			return false
		}
		d.AskAgain = d.RetryAfter
		out[i] = d
		denied = denied || !d.Allowed && !t.Shadow
	}
	return denied
}

func (k *known) wouldSay(t *comporta.Take, now int64, d *comporta.Decision) bool {
	p := k.place(&t.Key)
	p.shard.mu.RLock()
	defer p.shard.mu.RUnlock()
	a, used := p.findLocked()
	switch {
	case a == nil:
		return false
	case a.denies(t.Rule, t.Cost, now):
		touch(used, now)
		a.denial(d, t.Cost, now)
		return true
	case a.allows(t, now):
		a.peek(d, now)
		return true
	}
	return false
}

func (a *answer) age(now int64) time.Duration { return time.Duration(max(0, now-a.replied)) }

func (a *answer) denies(rule *comporta.Rule, cost, now int64) bool {
	return now < a.until && cost >= a.cost && a.under(rule)
}

// allows says whether a limit that was not in the way a moment ago is not in the
// way of this take. One that charges attempts must be asked all the same.
func (a *answer) allows(t *comporta.Take, now int64) bool {
	return a.decision.Allowed && t.Cost <= a.decision.Remaining && a.age(now) < remembers && a.under(t.Rule) &&
		(t.Shadow || t.Rule.Limit().Charge != comporta.Attempts)
}

// under says whether the answer was given under the same rule.
func (a *answer) under(rule *comporta.Rule) bool {
	if a.rule == rule {
		return true
	}
	was, is := a.rule.Limit(), rule.Limit()
	return was.MaxWait == is.MaxWait && was.Charge == is.Charge && a.rule.Same(rule)
}

// denial fills in the decision as it is by now. What it tells runs from when the
// reply came, which is after the instant that counted: nobody is told too little.
func (a *answer) denial(d *comporta.Decision, cost, now int64) {
	*d = a.decision
	if cost > a.cost {
		d.RetryAfter = a.retry(cost)
	}
	shift(d, a.age(now))
}

// peek fills in the decision on looking, a while after the answer.
func (a *answer) peek(d *comporta.Decision, now int64) {
	*d = a.decision
	d.Delay = 0
	shift(d, a.age(now))
}

// shift lets a while pass in which nothing happens: durations grow shorter, by
// whole microseconds.
func shift(d *comporta.Decision, after time.Duration) {
	after = after.Truncate(time.Microsecond)
	d.ResetAfter = max(0, d.ResetAfter-after)
	d.FullAfter = max(0, d.FullAfter-after)
	if d.RetryAfter != comporta.Never {
		d.RetryAfter = max(0, d.RetryAfter-after)
	}
}

// retry is the retry-after of a larger cost than was asked for.
func (a *answer) retry(cost int64) time.Duration {
	d := &a.decision
	switch {
	case d.RetryAfter == comporta.Never || cost > a.rule.Full():
		return comporta.Never
	case a.rule.Ticks() > 0: // a bucket fills evenly
		us, ticks := a.rule.TimeFor(cost - a.cost)
		if ticks > 0 {
			us++
		}
		return d.RetryAfter + time.Duration(us)*time.Microsecond
	}
	return max(d.RetryAfter, d.FullAfter)
}
