package sim

import "github.com/comporta/comporta"

// key is what is kept of one client under one rule: the state and, for a sliding
// log, its entries. The zero key was never seen.
type key struct {
	state   comporta.State
	entries comporta.Entries
}

// take asks at an instant, and spends when allowed. The cost has been checked.
func (k *key) take(rule *comporta.Rule, now comporta.Instant, cost int64) (d comporta.Decision) {
	c := comporta.Cell{State: k.state, Log: k.entries}
	rule.Advance(&c, now, cost, &d)
	k.keep(&c)
	return d
}

// settle replaces the cost of a take; the decision is that of a peek afterwards.
func (k *key) settle(rule *comporta.Rule, now comporta.Instant, taken comporta.Receipt, actual int64) comporta.Decision {
	c := comporta.Cell{State: k.state, Log: k.entries}
	rule.Settle(&c, now, taken, actual)
	k.keep(&c)
	return k.take(rule, now, 0)
}

func (k *key) keep(c *comporta.Cell) {
	if !c.Changed {
		return
	}
	k.state, k.entries = c.State, k.entries.Apply(c.Edit)
	// Takes of one instant share an entry, so that a burst costs no more than one take.
	if n := len(k.entries); n > 1 && k.entries[n-1].At == k.entries[n-2].At {
		k.entries[n-2].Cost += k.entries[n-1].Cost
		k.entries = k.entries[:n-1]
	}
}
