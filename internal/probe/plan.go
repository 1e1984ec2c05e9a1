package probe

import (
	"cmp"
	"math"
	"slices"
)

// A belief is one of the models that fit, with a limit that it may have, and how much
// it weighs: all variants together weigh the same.
type belief struct {
	ghost  *ghost
	weight float64
}

// believe picks models that stand for all that fit.
func (e *evidence) believe(found []search, each int) (all []belief) {
	for i := range found {
		f := slices.Clone(found[i].fitting)
		if len(f) == 0 {
			continue
		}
		slices.SortFunc(f, func(a, b model) int {
			return cmp.Or(cmp.Compare(a.window, b.window), cmp.Compare(a.boundary, b.boundary))
		})
		n := min(each, len(f))
		for k := range n {
			m := f[(2*k+1)*len(f)/(2*n)]
			least, most := float64(m.room.least()), float64(min(m.room.most(), 2*m.room.least()+10))
			part := []float64{0.5, 0, 1}[k%3]
			limit := math.Round(least + part*(most-least))
			all = append(all, belief{newGhost(e, &m, limit), 1 / float64(n)})
		}
	}
	return all
}

// A round is the one experiment there is: to wait, to take a part of what there is or
// all, to wait until something comes back, and to see how much.
type round struct {
	at    float64 // when to take
	all   bool    // until one is denied; else share
	share float64
	// What is expected, over all beliefs.
	takes    float64
	returns  []float64 // the instants at which the first comes back, in order
	worth    float64
	costs    float64
	requests float64
	first    int     // surely there
	refill   float64 // units that come back during a trip
	denials  bool    // that denials count is likely
}

// A sign is what a belief expects of a round, within the uncertainty of time.
type sign struct{ taken, back, came [2]float64 }

func apart(a, b [2]float64, by float64) bool { return a[0] > b[1]+by || b[0] > a[1]+by }

func (s *sign) differs(o *sign, blur float64) bool {
	if apart(s.taken, o.taken, 0.5) {
		return true
	}
	rel := 0.01 * min(s.back[1], o.back[1])
	return apart(s.back, o.back, blur+rel) || apart(s.came, o.came, 0.5)
}

// foresee is what a belief expects of a round.
func (b *belief) foresee(r *round, blur float64) (s sign) {
	for i, shift := range []float64{-blur / 2, blur / 2} {
		g := b.ghost.clone()
		at := r.at + shift
		n := g.room(at)
		if !r.all {
			n = min(n, r.share)
		}
		taken := g.take(at, n)
		s.taken[i] = taken
		back := at
		came := 0.0
		if r.all || taken < r.share {
			g.take(at, 1)
			back = g.next(at)
			came = min(g.room(back+0.05*(back-at)+blur), max(2, 0.4*b.ghost.limit)) // as much as fight looks for
		}
		s.back[i], s.came[i] = back-at, came
	}
	for _, p := range []*[2]float64{&s.taken, &s.back, &s.came} {
		if p[0] > p[1] {
			p[0], p[1] = p[1], p[0]
		}
	}
	return s
}

// plan chooses the round that leaves least in doubt for what it costs.
func (e *evidence) plan(beliefs []belief, from float64, left Budget) (best round, ok bool) {
	starts := e.starts(beliefs, from)
	// Where nothing is told apart for sure, chance may do it: instants are seldom as
	// uncertain as they may be. And what mimics another way for a while does not do so
	// for long: the rounds reach further and further, while they can.
	for _, blur := range []float64{0.7 * e.jitter, 0.2 * e.jitter} {
		for _, reach := range []float64{0.2 * from, 0} {
			last := math.Inf(-1)
			for _, at := range starts {
				if at < last+0.03*(at-from) { // as good as the one before
					continue
				}
				last = at
				for _, all := range []bool{true, false} {
					r := round{at: at, all: all}
					if !all {
						r.share = math.Ceil(0.4 * beliefs[0].ghost.limit)
					}
					e.weigh(&r, beliefs, from, blur+0.003)
					end := r.returns[len(r.returns)/2]
					if end-from < reach || end-from > left.Time.Seconds() || r.requests > float64(left.Requests) {
						continue
					}
					if r.worth > 0.02 && (!ok || r.worth/r.costs > best.worth/best.costs) {
						best, ok = r, true
					}
				}
			}
			if ok {
				return best, true
			}
		}
	}
	return best, false
}

// starts are the instants at which a round may begin.
func (e *evidence) starts(beliefs []belief, from float64) []float64 {
	starts := []float64{from + 0.02}
	stride := max(1, len(beliefs)/10)
	for i := stride / 2; i < len(beliefs); i += stride {
		g := beliefs[i].ghost
		p := g.m.window
		if g.m.algorithm.Bucket() {
			p *= g.limit
			// When a unit more is there: how many there are tells the rate.
			for _, part := range []float64{0.3, 0.6, 0.95} {
				units := math.Floor(part * g.limit)
				g.move(from)
				if at := from + (g.level+units-g.limit)*g.m.window; units > 0 && at > from {
					starts = append(starts, at)
				}
			}
		}
		for _, part := range []float64{0.1, 0.3, 0.6, 0.9, 1.3, 1.8, 2.4} {
			starts = append(starts, from+part*p)
		}
	}
	slices.Sort(starts)
	return starts
}

func (e *evidence) weigh(r *round, beliefs []belief, from, blur float64) {
	signs := make([]sign, len(beliefs))
	sum := 0.0
	for i := range beliefs {
		sum += beliefs[i].weight
	}
	takes := make([]float64, len(beliefs))
	charged := 0.0
	for i := range beliefs {
		signs[i] = beliefs[i].foresee(r, blur)
		r.takes += beliefs[i].weight * signs[i].taken[1]
		takes[i] = signs[i].taken[0]
		g := beliefs[i].ghost
		unit := g.m.window
		if !g.m.algorithm.Bucket() {
			unit /= g.limit
		}
		r.refill += beliefs[i].weight / sum * (e.trip + e.jitter) / unit
		if g.m.attempts {
			charged += beliefs[i].weight
		}
		r.requests += beliefs[i].weight * (signs[i].taken[1] + signs[i].came[1])
		r.returns = append(r.returns, r.at+(signs[i].back[0]+signs[i].back[1])/2)
	}
	r.takes /= sum
	r.requests = r.requests/sum*1.3 + 20
	slices.Sort(r.returns)
	slices.Sort(takes)
	r.first = max(1, int(0.9*takes[len(takes)/4]))
	r.denials = charged > 0.6*sum
	// doubt is the weight of the pairs that would still not be told apart, of those
	// that matter: other algorithms, or numbers that are not nearly the same.
	var pairs, doubt [2]float64
	for i := range beliefs {
		for j := range i {
			a, b := beliefs[i].ghost, beliefs[j].ghost
			kind := 0
			switch {
			case a.m.variant != b.m.variant:
			case math.Abs(a.m.window-b.m.window) < 0.01*a.m.window && a.limit == b.limit:
				continue
			default:
				kind = 1
			}
			w := beliefs[i].weight * beliefs[j].weight
			pairs[kind] += w
			if !signs[i].differs(&signs[j], blur) {
				doubt[kind] += w
			}
		}
	}
	for kind, share := range []float64{1, 0.6} {
		if pairs[kind] > 0 {
			const floor = 0.002 // as fine as this many beliefs can tell
			r.worth += share * math.Log((1+floor)/(doubt[kind]/pairs[kind]+floor)) / math.Log(1/floor)
		}
	}
	wait := r.returns[len(r.returns)/2] - from
	r.costs = 1 + r.requests/1500 + wait/100
}

// settled says that one algorithm is left and its numbers are known well enough.
func (e *evidence) settled(found []search) bool {
	var only *search
	for i := range found {
		if len(found[i].fitting) == 0 {
			continue
		}
		if only != nil {
			return false
		}
		only = &found[i]
	}
	if only == nil {
		return true
	}
	lo, hi := math.Inf(1), 0.0
	least, most := math.MaxInt, 0
	for i := range only.fitting {
		m := &only.fitting[i]
		lo, hi = min(lo, m.window), max(hi, m.window)
		least, most = min(least, m.room.least()), max(most, m.room.most())
	}
	blur := 0.0
	if only.algorithm.Bucket() { // what runs in meanwhile is known no better
		blur = 2 + 1.5*e.jitter/lo
	}
	return hi-lo <= 0.03*lo && float64(most-least) <= blur
}
