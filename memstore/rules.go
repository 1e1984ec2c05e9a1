package memstore

import (
	"sync"
	"sync/atomic"

	"github.com/comporta/comporta"
)

// rules gives each rule a small number, so that a slot can name the rule that
// its state was made under in 16 bits. Rules of the same numbers share one. Only
// a key's first state, and a reload of the policy, come by the lock.
type rules struct {
	byNumber [wideRule]atomic.Pointer[comporta.Rule]

	mu     sync.RWMutex
	byRule map[*comporta.Rule]int
	last   int
}

// get is the rule of a number that a slot holds.
func (r *rules) get(number int) *comporta.Rule { return r.byNumber[number].Load() }

// number is the rule's number; wideRule when 65,534 others have come before.
func (r *rules) number(rule *comporta.Rule) int {
	r.mu.RLock()
	n, known := r.byRule[rule]
	r.mu.RUnlock()
	if known {
		return n
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, known := r.byRule[rule]; known {
		return n
	}
	n = wideRule
	for i := 1; i <= r.last; i++ {
		if r.byNumber[i].Load().Same(rule) {
			n = i
			break
		}
	}
	if n == wideRule && r.last+1 < wideRule {
		r.last++
		n = r.last
	}
	if n != wideRule {
		// The newest of the same numbers stands for all: a reload makes new rules, and
		// the state's then is the take's very own, which is quicker to tell.
		r.byNumber[n].Store(rule)
	}
	if r.byRule == nil || len(r.byRule) > 2*wideRule {
		r.byRule = make(map[*comporta.Rule]int) // reloads add up
	}
	r.byRule[rule] = n
	return n
}
