package comporta

import (
	"slices"
	"sort"
)

// An Entry is what a sliding log remembers of the takes of one instant.
type Entry struct {
	At   Instant
	Cost int64
}

// Entries is the plain sliding log, oldest first: a slice, for models,
// simulations and tests. Each call costs time in proportion to its length; a
// store that is asked often keeps a better one.
type Entries []Entry

var _ Log = Entries(nil)

// after is the index of the first entry later than t.
func (e Entries) after(t Instant) int {
	return sort.Search(len(e), func(i int) bool { return e[i].At > t })
}

// After is the total cost of the entries later than t, and the latest instant.
func (e Entries) After(t Instant) (sum int64, newest Instant) {
	for _, entry := range e[e.after(t):] {
		sum += entry.Cost
		newest = entry.At
	}
	return sum, newest
}

// Reach is the instant of the entry later than t by which the costs reach n.
func (e Entries) Reach(t Instant, n int64) Instant {
	for _, entry := range e[e.after(t):] {
		if n -= entry.Cost; n <= 0 {
			return entry.At
		}
	}
	panic("comporta: Reach was asked for more units than the log holds")
}

// At is the total cost of the entries at t.
func (e Entries) At(t Instant) (cost int64) {
	for _, entry := range e[e.after(t-1):e.after(t)] {
		cost += entry.Cost
	}
	return cost
}

// Apply is the log after an edit; e itself stays as it is.
func (e Entries) Apply(edit Edit) Entries {
	out := slices.Clone(e)
	if edit.Dropping {
		out = out[out.after(edit.Drop):]
	}
	for cut := edit.Cut; cut > 0 && len(out) > 0; {
		part := min(cut, out[0].Cost)
		cut -= part
		if out[0].Cost -= part; out[0].Cost == 0 {
			out = out[1:]
		}
	}
	if edit.Clamping {
		for i := out.after(edit.Clamp); i < len(out); i++ {
			out[i].At = edit.Clamp
		}
	}
	for i, back := out.after(edit.BackAt-1), edit.Back; back > 0 && i < len(out) && out[i].At == edit.BackAt; {
		part := min(back, out[i].Cost)
		back -= part
		if out[i].Cost -= part; out[i].Cost == 0 {
			out = slices.Delete(out, i, i+1)
		}
	}
	if edit.Add > 0 {
		out = append(out, Entry{edit.AddAt, edit.Add})
	}
	return out
}
