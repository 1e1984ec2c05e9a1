package probe

import (
	"math"
	"slices"

	"github.com/comporta/comporta"
)

// tighten narrows the intervals in which the server decided until hardly any model
// fits: those that do are the likeliest. tight is the part of the uncertainty that is
// left, small where a variant explains all that was seen without stretching it.
func (e *evidence) tighten(s *search) (models []model, tight float64) {
	models, tight = s.fitting, 1
	if s.algorithm.Bucket() {
		own := *e
		e = &own
		for range 3 {
			e.measureThere(middle(models))
		}
	}
	for _, part := range []float64{0.85, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12} {
		narrow := e.narrow(part)
		n := search{variant: s.variant, nearest: model{strain: math.Inf(1)}}
		var tried []model
		for k := range min(60, len(models)) {
			tried = append(tried, narrow.tryInto(&n, models[k*len(models)/min(60, len(models))]))
		}
		shift := 0.0
		if s.algorithm == comporta.SlidingCounter || s.algorithm == comporta.FixedWindow {
			shift = 0.002
		}
		narrow.descend(&n, tried, 6, 0.002, shift)
		if len(n.fitting) == 0 {
			break
		}
		models, tight = n.fitting, part
	}
	return models, tight
}

// arrival is when a group most likely arrived: a volley over the jitter on the way
// there, a single shot after its share of what its trip took too long.
func (e *evidence) arrival(g *group) (first, last float64) {
	shots := float64(g.admitted + g.denied + g.lost)
	if shots == 1 && e.jitter > 0 && g.lost == 0 {
		at := g.sent + min(g.over, e.jitter)*e.there/e.jitter
		return at, at
	}
	return g.sent + e.there/(shots+1), g.sent + e.there*shots/(shots+1)
}

// likeliest are the models of those that fit under which what was seen is likeliest,
// and the logarithm of how likely it is.
func (e *evidence) likeliest(s *search) (models []model, chance float64) {
	tight, _ := e.tighten(s)
	own := *e
	if s.algorithm.Bucket() {
		for range 3 {
			own.measureThere(middle(tight))
		}
	}
	type told struct {
		m      model
		chance float64
	}
	var all []told
	for _, from := range [][]model{s.fitting, tight} {
		n := min(80, len(from))
		for k := range n {
			m := from[(2*k+1)*len(from)/(2*n)]
			limit := number([]model{m}, m.window, e.lost > 0)
			if s.algorithm.Bucket() {
				narrow := m
				own.narrow(0).try(&narrow)
				limit = min(max(int(math.Round(narrow.room.lo+0.1)), m.room.least()), m.room.most())
			}
			all = append(all, told{m, own.likelihood(&m, float64(limit))})
		}
	}
	chance = math.Inf(-1)
	for i := range all {
		chance = max(chance, all[i].chance)
	}
	if s.algorithm.Bucket() { // one valley: its middle is the best that can be said
		return tight, chance
	}
	for i := range all {
		if all[i].chance > chance-2 {
			models = append(models, all[i].m)
		}
	}
	return models, chance
}

// narrow is the evidence with a part of its uncertainty of time, around the arrival.
func (e *evidence) narrow(part float64) *evidence {
	n := *e
	n.groups = slices.Clone(e.groups)
	for i := range n.groups {
		g := &n.groups[i]
		first, last := e.arrival(g)
		g.first += (1 - part) * (first - g.first)
		g.last += (1 - part) * (last - g.last)
		if i > 0 {
			g.last = max(g.last, n.groups[i-1].last)
		}
	}
	q := &n.queue.unit
	q.Low, q.High = q.Value+(q.Low-q.Value)*part, q.Value+(q.High-q.Value)*part
	return &n
}

// likelihood is the logarithm of how likely all that was seen is, were the ghost's
// model right: each group is foretold from what was seen before it, at the earliest
// and the latest instant that are likely. Who foretells anything foretells nothing:
// a wide range makes each of its outcomes unlikely.
func (e *evidence) likelihood(m *model, limit float64) float64 {
	const steps = 4 // in which a volley arrives
	g := &ghost{m: m, limit: limit, k: math.Inf(-1), at: math.Inf(-1)}
	sum := 0.0
	for i := range e.groups {
		x := &e.groups[i]
		n := x.admitted + x.denied
		first, last := e.arrival(x)
		if x.lost == 0 && n > 0 {
			var foretold [2]float64
			for k, shift := range []float64{-0.25 * min(x.over, e.jitter), 0.25 * min(x.over, e.jitter)} {
				c := g.clone()
				parts := min(steps, n)
				for p := range parts {
					at := first + shift
					if parts > 1 {
						at += (last - first) * float64(p) / float64(parts-1)
					}
					foretold[k] += c.take(at, float64(n)/float64(parts))
				}
			}
			mid, spread := (foretold[0]+foretold[1])/2, math.Abs(foretold[1]-foretold[0])/2
			sd := 0.15 + 0.6*spread + 0.01*float64(min(n, steps*int(spread+1)))
			off := (float64(x.admitted) - mid) / sd
			sum -= min(off*off/2, 12) + math.Log(sd/0.15)
		}
		g.seen((first+last)/2, float64(x.admitted), float64(x.denied))
	}
	return sum
}
