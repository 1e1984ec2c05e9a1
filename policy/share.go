package policy

import (
	"hash/maphash"
	"sync/atomic"
)

// inShare says whether a client is one of those that a limit which is enforced for
// a share of them holds. The policy's secret fixes who they are.
func (e *Engine) inShare(l *Limit, id string) bool {
	return e.secret.Percent(l.Name, id) < l.Share
}

// lastPlans remembers the plan that clients last had, of those whose plan comes
// with a credential, so that they can be looked at without it. It is bounded: a
// client may drive out another. It is safe for concurrent use.
type lastPlans struct {
	places [1 << 14]atomic.Pointer[lastPlan]
}

type lastPlan struct{ id, plan string }

var plansSeed = maphash.MakeSeed()

func (p *lastPlans) place(id string) *atomic.Pointer[lastPlan] {
	return &p.places[maphash.String(plansSeed, id)%uint64(len(p.places))]
}

func (p *lastPlans) remember(id, plan string) {
	place := p.place(id)
	if known := place.Load(); known == nil || known.id != id || known.plan != plan {
		place.Store(&lastPlan{id, plan})
	}
}

// of is the plan that a client last had.
func (p *lastPlans) of(id string) (plan string, known bool) {
	last := p.place(id).Load()
	if last == nil || last.id != id {
		return "", false
	}
	return last.plan, true
}
