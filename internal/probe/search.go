package probe

import (
	"cmp"
	"math"
	"slices"

	"github.com/comporta/comporta"
)

// A variant is a way to limit, as it can be told from outside. The two buckets admit
// and deny alike; whether answers are held back tells which of them it is.
type variant struct {
	algorithm comporta.Algorithm
	attempts  bool // denied requests are charged
	own       bool // windows begin with requests, and not as a clock has it
}

// variants are all that are searched. A fixed window that charges attempts does not
// differ from one that does not.
var variants = []variant{
	{algorithm: comporta.FixedWindow},
	{algorithm: comporta.FixedWindow, own: true},
	{algorithm: comporta.SlidingLog},
	{algorithm: comporta.SlidingLog, attempts: true},
	{algorithm: comporta.SlidingCounter},
	{algorithm: comporta.SlidingCounter, attempts: true},
	{algorithm: comporta.SlidingCounter, attempts: true, own: true},
	{algorithm: comporta.TokenBucket},
	{algorithm: comporta.TokenBucket, attempts: true},
}

// A model is a variant with its numbers. Those that fit are consistent with all that
// was seen.
type model struct {
	variant
	window   float64 // seconds; of buckets: for one unit
	boundary float64 // an instant at which a window begins
	room     room    // of the limit, or the burst
	strain   float64 // units by which it does not fit
}

func (m *model) fits() bool { return m.strain <= slack }

// try fills in room and strain.
func (e *evidence) try(m *model) {
	switch {
	case m.own && m.algorithm == comporta.FixedWindow:
		m.room = e.ownWindow(m.window)
	case m.own:
		m.room = e.ownCounter(m.window)
	case m.algorithm == comporta.FixedWindow:
		m.room = e.fixedWindow(m.window, m.boundary)
	case m.algorithm == comporta.SlidingLog:
		m.room = e.slidingLog(m.window, m.attempts)
	case m.algorithm == comporta.SlidingCounter:
		m.room = e.slidingCounter(m.window, m.boundary, m.attempts)
	default:
		var stray float64
		m.room, stray = e.bucket(1/m.window, m.attempts)
		// A bucket that fills within the uncertainty of time is not one that can be seen.
		m.room.lo = max(m.room.lo, 1, 1.5*e.jitter/m.window)
		m.strain = max(m.room.strain(), stray)
		if q := e.queue.unit; e.queue.known && (m.window < q.Low || m.window > q.High) {
			m.strain = max(m.strain, 2*slack, math.Abs(m.window-q.Value)*m.room.lo/m.window)
		}
		return
	}
	m.room.lo = max(m.room.lo, 1)
	m.strain = m.room.strain()
}

// Windows from shortest to longest times what was seen are searched.
const (
	shortestWindow = 0.2
	shortestUnit   = 2e-4
	longestFactor  = 2
)

// A search is what was found for one variant.
type search struct {
	variant
	fitting []model
	nearest model // the one with the least strain
}

func (s *search) add(m model) {
	if m.fits() {
		s.fitting = append(s.fitting, m)
	}
	if m.strain < s.nearest.strain {
		s.nearest = m
	}
}

// search tries many numbers for a variant. What fitted or nearly did before is tried
// first, if seeds are given.
func (e *evidence) search(v variant, seeds []model) search {
	s := search{variant: v, nearest: model{variant: v, strain: math.Inf(1)}}
	longest := longestFactor*e.span() + 1
	var tried []model
	for _, m := range seeds {
		if m.variant == v {
			tried = append(tried, e.tryInto(&s, m))
		}
	}
	if v.own {
		e.searchOwn(&s, tried, longest)
		return s
	}
	switch v.algorithm {
	case comporta.FixedWindow:
		e.searchFixed(&s, longest)
	case comporta.SlidingLog:
		var last float64
		for w := shortestWindow; w < longest; w += min(max(w*0.004, 0.002), 0.02) {
			m := e.tryInto(&s, model{variant: v, window: w})
			if m.strain < 2 || last < 2 {
				tried = append(tried, m)
			}
			last = m.strain
		}
		e.descend(&s, tried, 10, 0.002, 0)
		e.extend(&s, 1, longest)
		e.extend(&s, -1, longest)
	case comporta.SlidingCounter:
		e.searchCounter(&s, tried, longest)
	default:
		e.searchBucket(&s, tried, longest)
	}
	return s
}

// descend goes downhill from the best of what was tried, in steps of a part of the
// window at first; shift is such a step of the boundary.
func (e *evidence) descend(s *search, tried []model, most int, step, shift float64) {
	tried = slices.Clone(tried)
	slices.SortStableFunc(tried, func(a, b model) int { return cmp.Compare(a.strain, b.strain) })
	for _, m := range tried[:min(most, len(tried))] {
		dw, db := m.window*step, m.window*shift
		moves := [][2]float64{{dw, 0}, {-dw, 0}, {0, db}, {0, -db}, {dw, db}, {-dw, -db}, {dw, -db}, {-dw, db}}
		if shift == 0 {
			moves = moves[:2]
		}
		part := 1.0
		for range 14 {
			better := m
			for _, d := range moves {
				n := e.tryInto(s, model{variant: s.variant, window: m.window + part*d[0], boundary: m.boundary + part*d[1]})
				if n.strain < better.strain {
					better = n
				}
			}
			if better == m {
				part /= 2
			}
			m = better
		}
	}
}

func (e *evidence) tryInto(s *search, m model) model {
	e.try(&m)
	s.add(m)
	return m
}

// searchBucket goes over the rates, and downhill from where they strain least.
func (e *evidence) searchBucket(s *search, seeds []model, longest float64) {
	const step = 1.02
	var all []model
	from, to := shortestUnit, longest
	if e.queue.known { // the delays tell the rate
		from, to = e.queue.unit.Low, e.queue.unit.High
	}
	for w := from; w < to; w *= min(step, 1e-5+math.Pow(to/from, 0.02)) {
		all = append(all, e.tryInto(s, model{variant: s.variant, window: w}))
	}
	lows := slices.Clone(seeds)
	for i := range all {
		if (i == 0 || all[i].strain < all[i-1].strain) && (i+1 == len(all) || all[i].strain <= all[i+1].strain) {
			lows = append(lows, all[i])
		}
	}
	e.descend(s, lows, 30, step-1, 0)
}

// A turn is a denial followed by an admission: between two windows' counts, a
// boundary lies between them.
type turn struct{ from, to float64 }

func (e *evidence) turns() (all []turn) {
	for i := 1; i < len(e.groups); i++ {
		a, b := &e.groups[i-1], &e.groups[i]
		if a.denied > 0 && a.lost == 0 && b.admitted > 0 && a.last <= b.first {
			all = append(all, turn{a.first, b.last})
		}
	}
	return all
}

// searchFixed tries windows with a boundary in every turn.
func (e *evidence) searchFixed(s *search, longest float64) {
	turns := e.turns()
	if len(turns) == 0 { // nothing tells of a boundary yet
		turns = []turn{{e.groups[len(e.groups)-1].last, e.groups[len(e.groups)-1].last + longest}}
	}
	narrow := turns[0]
	for _, t := range turns {
		if t.to-t.from < narrow.to-narrow.from {
			narrow = t
		}
	}
	for w := shortestWindow; w < longest; w += w * min(0.01, max((narrow.to-narrow.from)/(8*e.span()), 1e-4)) {
		lo, hi := narrow.from, narrow.to
		for _, t := range turns {
			// t holds lo + k·w for a whole k, for some lo in the range so far.
			k := math.Ceil((t.from - hi) / w)
			if k*w+lo > t.to {
				lo, hi = 1, 0
				break
			}
			lo, hi = max(lo, t.from-k*w), min(hi, t.to-k*w)
		}
		if lo > hi {
			continue
		}
		for _, part := range []float64{0.02, 0.25, 0.5, 0.75, 0.98} {
			e.tryInto(s, model{variant: s.variant, window: w, boundary: lo + part*(hi-lo)})
		}
	}
	for k := range s.fitting {
		s.fitting[k].boundary = math.Mod(s.fitting[k].boundary, s.fitting[k].window)
	}
}

// searchCounter goes over windows and boundaries coarsely, and downhill from the best
// boundary of each window. Boundaries are those around the middle of what was seen,
// so that a change of the window moves the others as little as may be.
func (e *evidence) searchCounter(s *search, seeds []model, longest float64) {
	const step, parts, bins = 1.05, 20, 40
	mid := e.groups[0].first + e.span()/2
	var best []model
	for w := shortestWindow * math.Pow(step, e.shift); w < longest; w *= step {
		low := model{strain: math.Inf(1)}
		for i := range parts {
			m := e.tryInto(s, model{variant: s.variant, window: w, boundary: mid + w*(float64(i)+e.shift)/parts})
			if m.strain < low.strain {
				low = m
			}
		}
		best = append(best, low)
	}
	for i := range seeds {
		m := &seeds[i]
		m.boundary += math.Ceil((mid-m.boundary)/m.window) * m.window
	}
	e.descend(s, best, bins, (step-1)/2, 1.0/parts/2)
	e.descend(s, seeds, 16, 0.002, 0.002)
	e.extend(s, 1, longest)
	e.extend(s, -1, longest)
}

// extend follows what fits to longer or shorter windows as far as it goes.
func (e *evidence) extend(s *search, way, longest float64) {
	if len(s.fitting) == 0 {
		return
	}
	m := s.fitting[0]
	for _, f := range s.fitting {
		if way*f.window > way*m.window {
			m = f
		}
	}
	for step := 0.02; step > 0.0005 && m.window < longest && m.window > shortestWindow; {
		w := m.window * (1 + way*step)
		best := model{strain: math.Inf(1)}
		for i := -8; i <= 8; i++ {
			if i != 0 && (s.own || s.algorithm != comporta.SlidingCounter) {
				continue // it has no boundary
			}
			n := e.tryInto(s, model{variant: s.variant, window: w, boundary: m.boundary + float64(i)*step*m.window/4})
			if n.strain < best.strain {
				best = n
			}
		}
		if !best.fits() {
			step /= 2
			continue
		}
		m = best
	}
}
