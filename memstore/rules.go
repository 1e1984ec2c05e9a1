package memstore

import (
	"sync"
	"sync/atomic"

	"github.com/comporta/comporta"
)

// rules gives each rule a small number, so that a slot can name the rule that
// its state was made under in 16 bits. Rules of the same numbers share one. Only
// a key's first state, and a reload of the policy, come by the lock.
//
// Numbers of which no slot is left are given anew: see [rules.forget].
type rules struct {
	byNumber [wideRule]atomic.Pointer[comporta.Rule]
	// given has a bit for each number that was given out since the last sweep began.
	given [(wideRule + 1) / 64]atomic.Uint64
	// sweeping is held by who sweeps.
	sweeping sync.Mutex

	mu     sync.RWMutex
	byRule map[*comporta.Rule]int
	last   int   // the numbers over it have never been in use
	free   []int // of those up to it
}

// get is the rule of a number that a slot holds.
func (r *rules) get(number int) *comporta.Rule { return r.byNumber[number].Load() }

// number is the rule's number; wideRule when 65,534 others are in use. The lock
// of the shard that it is for is held.
func (r *rules) number(rule *comporta.Rule) int {
	r.mu.RLock()
	n, known := r.byRule[rule]
	if known {
		r.give(n) // under the lock, or it might be forgotten first
	}
	r.mu.RUnlock()
	if known {
		return n
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, known = r.byRule[rule]; !known {
		n = r.newLocked(rule)
		if n == wideRule {
			return n
		}
		// The newest of the same numbers stands for all: a reload makes new rules, and
		// the state's then is the take's very own, which is quicker to tell.
		r.byNumber[n].Store(rule)
		if r.byRule == nil || len(r.byRule) > 2*wideRule {
			r.byRule = make(map[*comporta.Rule]int) // reloads add up where nothing sweeps
		}
		r.byRule[rule] = n
	}
	r.give(n)
	return n
}

// newLocked is the number of a rule that has none: that of one with the same
// numbers, a free one, or wideRule.
func (r *rules) newLocked(rule *comporta.Rule) int {
	for i := 1; i <= r.last; i++ {
		if same := r.byNumber[i].Load(); same != nil && same.Same(rule) {
			return i
		}
	}
	if n := len(r.free); n > 0 {
		i := r.free[n-1]
		r.free = r.free[:n-1]
		return i
	}
	if r.last+1 < wideRule {
		r.last++
		return r.last
	}
	return wideRule
}

func (r *rules) give(n int) {
	if bits, bit := &r.given[n/64], uint64(1)<<(n%64); bits.Load()&bit == 0 {
		bits.Or(bit)
	}
}

// begin begins a sweep.
func (r *rules) begin() *census {
	for i := range r.given {
		r.given[i].Store(0)
	}
	return new(census)
}

// A census is which numbers the slots hold, as far as a sweep has come.
type census [wideRule + 1]bool

// count notes the numbers that a shard's slots hold. Its lock is held.
func (c *census) count(t table) {
	for slot := range t.slots {
		c[slotRule(t.load(slot, 1))] = true
	}
}

// forget frees the numbers that no slot holds: which none did when it was counted,
// and which were not given out since the sweep began. Whoever is given one writes it
// into a slot before the shard is unlocked, so that it is counted, or given later. Rules that are not those of a number, such as a policy's from before a reload,
// are forgotten too.
func (r *rules) forget(held *census) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := 1; n <= r.last; n++ {
		if !held[n] && r.given[n/64].Load()>>(n%64)&1 == 0 && r.byNumber[n].Load() != nil {
			r.byNumber[n].Store(nil)
			r.free = append(r.free, n)
		}
	}
	for rule, n := range r.byRule {
		if r.byNumber[n].Load() != rule {
			delete(r.byRule, rule)
		}
	}
}
