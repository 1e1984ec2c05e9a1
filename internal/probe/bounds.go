package probe

import "math"

// For each way to limit, these say which limits (or bursts) are consistent with all
// that was seen, given the window (or the rate). They assume nothing of when, within
// its interval, the server decided on a shot: what is admitted bounds the limit from
// below by what was certainly counted, what is denied bounds it from above by what
// may have been counted. So the truth is never excluded, and where the lower bound is
// over the upper, this way, with this window, is.

// A room is a range of limits: from lo, up to but not including over.
type room struct{ lo, over float64 }

func anyRoom() room { return room{lo: 0, over: math.Inf(1)} }

func (r *room) atLeast(x float64) { r.lo = max(r.lo, x) }
func (r *room) under(x float64)   { r.over = min(r.over, x) }

// atMost is under for whole counts: it leaves no doubt between x and x+1.
func (r *room) atMost(x int) { r.under(float64(x) + 0.5) }

// slack is by how many units a bound may be missed: instants are known to some
// microseconds only, and half the trip is a guess.
const slack = 0.05

// strain is by how many units the best whole number misses the room; under 0 where it
// lies well within.
func (r room) strain() float64 {
	if math.IsInf(r.over, 1) {
		return -math.MaxInt32
	}
	best := math.Inf(1)
	mid := max(r.lo, (r.lo+r.over)/2)
	for _, n := range []float64{math.Floor(r.lo), math.Ceil(r.lo), math.Floor(mid), math.Ceil(mid)} {
		if n >= 1 {
			best = min(best, max(r.lo-n, n-r.over))
		}
	}
	return best
}

// least and most are the whole numbers at the ends.
func (r room) least() int { return max(1, int(math.Ceil(r.lo-slack))) }
func (r room) most() int {
	if math.IsInf(r.over, 1) {
		return math.MaxInt32
	}
	return max(r.least(), int(math.Ceil(r.over+slack))-1)
}

// charged is how many units a group takes for sure, and at most.
func (g *group) charged(attempts bool) (sure, perhaps int) {
	sure = g.admitted
	if attempts {
		sure += g.denied
	}
	return sure, sure + g.lost
}

// later adds up what groups that were sent after i, but may have been decided on
// before it, may have taken.
func (e *evidence) later(i int, attempts bool) (perhaps int) {
	for j := i + 1; j < len(e.groups) && e.groups[j].first < e.groups[i].last; j++ {
		_, p := e.groups[j].charged(attempts)
		perhaps += p
	}
	return perhaps
}

// slidingLog: never more than the limit in any window.
func (e *evidence) slidingLog(window float64, attempts bool) room {
	r := anyRoom()
	from, maybeFrom := 0, 0
	sure, perhaps := 0, 0 // of groups from, ... i−1 and maybeFrom, ... i−1
	for i := range e.groups {
		g := &e.groups[i]
		for from < i && e.groups[from].first <= g.last-window {
			s, _ := e.groups[from].charged(attempts)
			sure -= s
			from++
		}
		for maybeFrom < i && e.groups[maybeFrom].last <= g.first-window {
			_, p := e.groups[maybeFrom].charged(attempts)
			perhaps -= p
			maybeFrom++
		}
		s, p := g.charged(attempts)
		if g.admitted > 0 && g.last-g.first < window {
			before := sure
			if i > 0 && e.groups[i-1].last > g.first { // may have come after
				before = e.surelyBefore(i, from, attempts)
			}
			r.atLeast(float64(before + g.admitted))
		}
		if g.denied > 0 {
			own := g.admitted + g.lost // before the first denial of the group there is none
			r.atMost(perhaps + own + e.later(i, attempts))
		}
		sure += s
		perhaps += p
	}
	return r
}

// surelyBefore adds up what the groups from, ... took, but where they may have come
// after group i; admitted ones count all the same, since the later of the two is
// then the one that bounds.
func (e *evidence) surelyBefore(i, from int, attempts bool) int {
	sum := 0
	for j := from; j < i; j++ {
		s := e.groups[j].admitted
		if attempts && e.groups[j].last <= e.groups[i].first {
			s += e.groups[j].denied
		}
		sum += s
	}
	return sum
}

// A count is what a window took for sure, and at most.
type count struct {
	k             float64
	sure, perhaps int
}

// windows goes through the groups and keeps the counts of this window and the last.
type windows struct {
	prev, cur count
}

// reach moves on to window k.
func (w *windows) reach(k float64) {
	switch {
	case k == w.cur.k:
	case k == w.cur.k+1:
		w.prev, w.cur = w.cur, count{k: k}
	case k > w.cur.k:
		w.prev, w.cur = count{k: k - 1}, count{k: k}
	}
}

// fixedWindow: never more than the limit between two boundaries. boundary is one.
func (e *evidence) fixedWindow(window, boundary float64) room {
	r := anyRoom()
	w := windows{cur: count{k: math.Inf(-1)}}
	for i := range e.groups {
		g := &e.groups[i]
		k0, k1 := math.Floor((g.first-boundary)/window), math.Floor((g.last-boundary)/window)
		_, p := g.charged(false)
		w.reach(k0)
		if k0 < w.cur.k { // overlaps a group that may lie in the next window
			k0 = w.cur.k
			k1 = max(k1, k0)
			if g.denied > 0 {
				r.atMost(max(w.prev.perhaps, w.cur.perhaps) + p + e.later(i, false))
			}
			w.prev.perhaps += p
			w.reach(k1)
			w.cur.perhaps += p
			continue
		}
		w.cur.perhaps += p
		if k0 == k1 {
			w.cur.sure += g.admitted
			r.atLeast(float64(w.cur.sure))
			if g.denied > 0 {
				r.atMost(w.cur.perhaps + e.later(i, false))
			}
			continue
		}
		inFirst := w.cur.perhaps
		w.reach(k1)
		w.cur.perhaps += p
		if g.denied > 0 {
			r.atMost(max(inFirst, w.cur.perhaps) + e.later(i, false))
		}
	}
	return r
}

// slidingCounter: the count of the window and what is left of the last one's, which
// falls evenly over it.
func (e *evidence) slidingCounter(window, boundary float64, attempts bool) room {
	r := anyRoom()
	w := windows{cur: count{k: math.Inf(-1)}}
	for i := range e.groups {
		g := &e.groups[i]
		s, p := g.charged(attempts)
		own := g.admitted + g.lost // before the first denial of the group there is none
		k0, k1 := math.Floor((g.first-boundary)/window), math.Floor((g.last-boundary)/window)
		w.reach(k0)
		late := float64(e.later(i, attempts))
		if k0 == k1 && k0 == w.cur.k {
			start := boundary + k0*window
			if g.admitted > 0 {
				sure := w.cur.sure
				if i > 0 && e.groups[i-1].last > g.first {
					sure = min(sure, w.cur.sure-e.unsure(i, attempts))
				}
				r.atLeast(least(w.prev.sure, float64(sure+g.admitted), (g.last-start)/window, attempts))
			}
			if g.denied > 0 {
				r.under(over(w.prev.perhaps, float64(w.cur.perhaps+own)+late, (g.first-start)/window, attempts))
			}
			w.cur.sure += s
			w.cur.perhaps += p
			continue
		}
		// Around a boundary: in either window, or in both.
		var before, after float64
		if k0 == w.cur.k {
			start := boundary + k0*window
			before = over(w.prev.perhaps, float64(w.cur.perhaps+own)+late, max(0, g.first-start)/window, attempts)
			w.cur.perhaps += p
		} else {
			w.prev.perhaps += p
			before = math.Inf(1) // behind a group that may lie in the next window: nothing is known
		}
		w.reach(k1)
		after = over(w.prev.perhaps, float64(w.cur.perhaps+own)+late, 0, attempts)
		w.cur.perhaps += p
		if g.denied > 0 {
			r.under(max(before, after))
		}
	}
	return r
}

// unsure is what attempts of groups before i took that may have come after it.
func (e *evidence) unsure(i int, attempts bool) (sum int) {
	if !attempts {
		return 0
	}
	for j := i - 1; j >= 0 && e.groups[j].last > e.groups[i].first; j-- {
		sum += e.groups[j].denied
	}
	return sum
}

// least is the least limit that a sliding counter allows the need-th unit of a window
// under, where the last window took prev and this one is at the given part.
// Charged attempts fill a window no further than to the limit.
func least(prev int, need, part float64, attempts bool) float64 {
	if attempts && need/part <= float64(prev) {
		return need / part
	}
	return float64(prev)*(1-part) + need
}

// over is the limit that it denies a unit under, with so many in the window before.
func over(prev int, cur, part float64, attempts bool) float64 {
	if prev == 0 {
		return cur + 0.5
	}
	return least(prev, cur+1, part, attempts)
}
