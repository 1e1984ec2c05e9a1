package probe

import "math"

// bucket: from any instant on, no more than a full bucket and what ran in since.
// Whoever is denied finds less than one unit: from some instant on, all that the
// bucket held and all that ran in was taken. Where attempts are charged, a denial
// empties it; stray is then by how many units the rate alone is contradicted.
func (e *evidence) bucket(rate float64, attempts bool) (r room, stray float64) {
	r, stray = anyRoom(), math.Inf(-1)
	// The best start of a stretch for either bound, as the units that it makes at time 0.
	sureStart, maybeStart := math.Inf(-1), math.Inf(-1)
	taken, maybe := 0, 0 // before this group: for sure, and at most
	var open []opening   // stretches whose groups this one may overlap
	var empty emptied
	for i := range e.groups {
		g := &e.groups[i]
		own := g.admitted + g.lost
		late := float64(e.later(i, false))
		sureStart = max(sureStart, rate*g.first-float64(taken))
		taken += g.admitted
		if g.admitted > 0 {
			r.atLeast(sureStart + float64(taken) - rate*g.last)
			if attempts && empty.known && empty.last < g.first {
				stray = max(stray, float64(taken-empty.taken)-rate*(g.last-empty.first))
			}
		}
		if g.denied > 0 {
			most := float64(own) - 0.5 // full at its own instant: whole numbers alone
			closed := 0
			for _, o := range open {
				if o.last <= g.first {
					maybeStart = max(maybeStart, rate*o.last-float64(o.maybe))
					closed++
				} else {
					most = max(most, float64(maybe+own-o.maybe)-0.5)
				}
			}
			open = open[closed:]
			most = max(most, maybeStart+float64(maybe+own)-rate*g.first)
			sinceDenial := float64(maybe+own-empty.maybe) - rate*max(0, g.first-empty.last)
			if !attempts || !empty.known || 1+late+sinceDenial <= 0 {
				r.under(1 + late + most)
			}
			empty = emptied{known: true, first: g.first, last: g.last, taken: taken, maybe: maybe + own}
		}
		open = append(open, opening{g.last, maybe})
		maybe += own
	}
	return r, stray
}

// Emptied is the last denial that, charged, emptied the bucket.
type emptied struct {
	known        bool
	first, last  float64
	taken, maybe int // until then
}

// An opening is where a stretch may begin: a group's end, and what was taken before it.
type opening struct {
	last  float64
	maybe int
}
