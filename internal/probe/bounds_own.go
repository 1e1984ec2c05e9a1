package probe

import "math"

// Many limiters keep to no windows of a clock: a counter that expires some time after
// its first request (INCR and EXPIRE, express-rate-limit), or one that begins anew
// after idle periods (HAProxy's stick tables). What they do is bounded here; their
// windows have no boundary to search for, since requests make it.

// hazy is how exactly such servers take the time: in whole milliseconds, or two.
const hazy = 0.002

// A span of time in which something happened once.
type between struct{ from, to float64 }

// ownWindow: never more than the limit from a first request on until a window later;
// the next window begins with the first request that is admitted then.
func (e *evidence) ownWindow(window float64) room {
	r := anyRoom()
	var start between
	var cur count
	begun, full := false, false
	for i := range e.groups {
		g := &e.groups[i]
		_, p := g.charged(false)
		late := e.later(i, false)
		after := g.first-hazy >= start.to+window  // surely after its end
		within := g.last+hazy < start.from+window // surely before
		switch {
		case begun && within:
			cur.sure += g.admitted
			cur.perhaps += p
		case !begun || after:
			begun, full = true, false
			start, cur = between{g.first, g.last}, count{sure: g.admitted, perhaps: p}
		case g.admitted == 0: // a new one would have admitted: the old one still was
			cur.perhaps += p
		case full && g.denied == 0: // nothing more passed in the old one
			full = false
			start, cur = between{max(g.first, start.from+window), g.last}, count{sure: g.admitted, perhaps: p}
		default: // in the old one, in a new one, or some in each
			if g.denied > 0 {
				r.atMost(cur.perhaps + p + late)
			}
			start.to, cur.sure, cur.perhaps, full = g.last, 0, cur.perhaps+p, false
			continue
		}
		r.atLeast(float64(cur.sure))
		if g.denied > 0 {
			r.atMost(cur.perhaps + late)
			full = true
		}
	}
	return r
}

// ownCounter: the count of a period, denied requests and all, and what is left of the
// last period's, which falls evenly, rounded down. A period follows the last one while
// there are requests; after an idle one it begins with a request.
func (e *evidence) ownCounter(window float64) room {
	r := anyRoom()
	var tick between
	var w windows
	begun := false
	part := func(at, start float64) float64 { return min(max((at-start)/window, 0), 1) }
	for i := range e.groups {
		g := &e.groups[i]
		s, p := g.charged(true)
		own := g.admitted + g.lost // before the first denial of the group there is none
		late := e.later(i, true)
		least, most := math.Inf(1), math.Inf(1)
		if begun {
			least = math.Floor((g.first - hazy - tick.to) / window)
			most = math.Floor((g.last + hazy - tick.from) / window)
		}
		upper := func(prev count, cur int, start between) int {
			return int(float64(prev.perhaps)*(1-part(g.first-hazy, start.to))) + cur + own + late
		}
		if least == most || least >= 2 {
			switch {
			case least == 1:
				tick.from, tick.to = tick.from+window, tick.to+window
				w.prev, w.cur = w.cur, count{}
			case least >= 2:
				begun = true
				tick = between{g.first, g.last}
				w.prev, w.cur = count{}, count{}
			}
			if least >= 0 {
				if g.admitted > 0 {
					sure := math.Floor(float64(w.prev.sure) * (1 - part(g.last+hazy, tick.from)))
					r.atLeast(sure + float64(w.cur.sure-e.unsure(i, true)+g.admitted))
				}
				if g.denied > 0 {
					r.atMost(upper(w.prev, w.cur.perhaps, tick))
				}
				w.cur.sure += s
				w.cur.perhaps += p
				continue
			}
		}
		// Around the end of a period: the most of what may be.
		next := between{tick.from + window, tick.to + window}
		bound := 0
		if least <= 0 {
			bound = upper(w.prev, w.cur.perhaps, tick)
		}
		bound = max(bound, upper(count{perhaps: w.cur.perhaps + p}, 0, next))
		if g.denied > 0 {
			r.atMost(bound + p)
		}
		switch {
		case most >= 2:
			tick = between{next.from, max(next.to, g.last)}
			w.prev, w.cur = count{perhaps: w.cur.perhaps + p}, count{perhaps: p}
		case least < 0: // perhaps still in the one before
			w.prev.perhaps += p
			w.cur.perhaps += p
		default:
			tick = next
			w.prev, w.cur = count{sure: w.cur.sure, perhaps: w.cur.perhaps + p}, count{perhaps: p}
		}
	}
	return r
}

// searchOwn goes over windows finely, and downhill from the best: there is nothing
// else to search for.
func (e *evidence) searchOwn(s *search, seeds []model, longest float64) {
	all := seeds
	var last float64
	for w := shortestWindow; w < longest; w += min(max(w*0.002, 0.001), 0.02) {
		m := e.tryInto(s, model{variant: s.variant, window: w})
		if m.strain < 3 || last < 3 {
			all = append(all, m)
		}
		last = m.strain
	}
	e.descend(s, all, 20, 0.001, 0)
	e.extend(s, 1, longest)
	e.extend(s, -1, longest)
}
