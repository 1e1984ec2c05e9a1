package sim

import "github.com/comporta/comporta"

// key is what is kept of one client under one rule: the state and, for a sliding
// log, its entries. The zero key was never seen.
type key struct {
	state   comporta.State
	entries comporta.Entries
}

// take asks at an instant, and spends when allowed. The cost has been checked.
func (k *key) take(rule *comporta.Rule, now comporta.Instant, cost int64) (d comporta.Taken) {
	c := comporta.Cell{State: k.state, Log: k.entries}
	rule.Advance(&c, now, cost, &d)
	k.keep(&c)
	return d
}

// settle replaces the cost of a take; the decision is that of a peek afterwards.
func (k *key) settle(rule *comporta.Rule, now comporta.Instant, taken comporta.Receipt, actual int64) comporta.Taken {
	c := comporta.Cell{State: k.state, Log: k.entries}
	rule.Settle(&c, now, taken, actual)
	k.keep(&c)
	return k.take(rule, now, 0)
}

func (k *key) keep(c *comporta.Cell) {
	if !c.Changed {
		return
	}
	k.state = c.State
	edit := c.Edit
	if edit.Cut > 0 || edit.Clamping || edit.Back > 0 {
		k.entries = k.entries.Apply(edit)
		return
	}
	// The usual edit, the oldest leave and one is added, is made in place: nobody
	// else holds the log, and a long one is not copied for each take.
	for edit.Dropping && len(k.entries) > 0 && k.entries[0].At <= edit.Drop {
		k.entries = k.entries[1:]
	}
	if edit.Add == 0 {
		return
	}
	if n := len(k.entries); n > 0 && k.entries[n-1].At == edit.AddAt {
		k.entries[n-1].Cost += edit.Add // takes of one instant share an entry
		return
	}
	k.entries = append(k.entries, comporta.Entry{At: edit.AddAt, Cost: edit.Add})
}
