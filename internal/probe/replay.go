package probe

import (
	"sort"

	"github.com/comporta/comporta"
)

// A replayer takes one key through a rule's pure step.
type replayer struct {
	rule *comporta.Rule
	cell comporta.Cell
	log  entries
}

func newReplayer(rule *comporta.Rule, phase uint64) *replayer {
	r := &replayer{rule: rule}
	r.cell.State.Phase = phase
	return r
}

// take asks for one unit.
func (r *replayer) take(at comporta.Instant) comporta.Taken {
	var out comporta.Taken
	phase := r.cell.State.Phase
	if r.rule.Algorithm() == comporta.SlidingLog {
		r.cell.Log = &r.log
	}
	r.rule.Advance(&r.cell, at, 1, &out)
	r.log.apply(&r.cell.Edit)
	r.cell.Edit = comporta.Edit{}
	r.cell.State.Phase = phase
	return out
}

// entries are a sliding log's, of one unit each, oldest first.
type entries []comporta.Instant

func (e *entries) after(t comporta.Instant) int {
	return sort.Search(len(*e), func(i int) bool { return (*e)[i] > t })
}

// After is part of [comporta.Log].
func (e *entries) After(t comporta.Instant) (sum int64, newest comporta.Instant) {
	n := len(*e) - e.after(t)
	if n == 0 {
		return 0, 0
	}
	return int64(n), (*e)[len(*e)-1]
}

// Reach is part of [comporta.Log].
func (e *entries) Reach(t comporta.Instant, n int64) comporta.Instant {
	return (*e)[e.after(t)+int(n)-1]
}

// At is part of [comporta.Log].
func (e *entries) At(t comporta.Instant) int64 { return int64(e.after(t) - e.after(t-1)) }

// apply does what a step of one unit says; nothing is ever settled here.
func (e *entries) apply(edit *comporta.Edit) {
	log := *e
	if edit.Clamping {
		for i := e.after(edit.Clamp); i < len(log); i++ {
			log[i] = edit.Clamp
		}
	}
	if edit.Dropping {
		log = log[e.after(edit.Drop):]
	}
	log = log[min(int(edit.Cut), len(log)):]
	for range edit.Add {
		log = append(log, edit.AddAt)
	}
	*e = log
}
