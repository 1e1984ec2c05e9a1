package probe

import (
	"math"

	"github.com/comporta/comporta"
)

// A ghost is what a server would be now, were a model right: it is led through all
// that was seen, taking what was admitted as admitted, and then says what would
// happen next. Seconds and units are no whole numbers here: a ghost plans, it
// proves nothing.
type ghost struct {
	m     *model
	limit float64

	k         float64 // of the window
	prev, cur float64
	level     float64 // of the bucket, at the time at
	at        float64
	log       []entry
	taken     float64 // sum of log from the head on
	head      int
	start     float64 // of a window that a request began, where one did
	begun     bool
}

type entry struct{ at, units float64 }

func newGhost(e *evidence, m *model, limit float64) *ghost {
	g := &ghost{m: m, limit: limit, k: math.Inf(-1), at: math.Inf(-1)}
	for i := range e.groups {
		x := &e.groups[i]
		g.seen((x.first+x.last)/2, float64(x.admitted), float64(x.denied))
	}
	return g
}

func (g *ghost) clone() *ghost {
	c := *g
	c.log = c.log[:len(c.log):len(c.log)] // appending copies
	return &c
}

// move brings it to an instant.
func (g *ghost) move(at float64) {
	if g.m.own {
		g.moveOwn(at)
		return
	}
	switch g.m.algorithm {
	case comporta.SlidingLog:
		for g.head < len(g.log) && g.log[g.head].at <= at-g.m.window {
			g.taken -= g.log[g.head].units
			g.head++
		}
	case comporta.FixedWindow, comporta.SlidingCounter:
		k := math.Floor((at - g.m.boundary) / g.m.window)
		switch {
		case k <= g.k:
		case k == g.k+1:
			g.prev, g.cur, g.k = g.cur, 0, k
		default:
			g.prev, g.cur, g.k = 0, 0, k
		}
	default:
		if at > g.at {
			g.level = max(0, g.level-(at-g.at)/g.m.window)
			g.at = at
		}
	}
}

// seen is what happened.
func (g *ghost) seen(at, admitted, denied float64) {
	g.move(at)
	charged := admitted
	if g.m.attempts {
		charged += denied
	}
	if g.m.own && !g.begun && charged > 0 {
		g.start, g.begun = at, true
	}
	switch g.m.algorithm {
	case comporta.SlidingLog:
		if charged > 0 {
			g.log = append(g.log, entry{at, charged})
			g.taken += charged
		}
	case comporta.FixedWindow:
		g.cur += admitted
	case comporta.SlidingCounter:
		if g.cur += charged; !g.m.own {
			g.cur = min(g.limit, g.cur)
		}
	default:
		g.level += admitted
		if g.m.attempts && denied > 0 {
			g.level = g.limit
		}
		g.level = min(g.level, g.limit)
	}
}

// room is how many would be admitted at once.
func (g *ghost) room(at float64) float64 {
	g.move(at)
	var used float64
	switch g.m.algorithm {
	case comporta.SlidingLog:
		used = g.taken
	case comporta.FixedWindow:
		used = g.cur
	case comporta.SlidingCounter:
		if g.m.own {
			used = g.cur
			if g.prev > 0 {
				used += math.Floor(g.prev * (1 - (at-g.start)/g.m.window))
			}
			break
		}
		used = g.cur + g.prev*(1-(at-g.m.boundary-g.k*g.m.window)/g.m.window)
	default:
		used = g.level
	}
	return max(0, math.Floor(g.limit-used+1e-9))
}

// take is how many of n sent at once would be admitted.
func (g *ghost) take(at, n float64) float64 {
	admitted := min(n, g.room(at))
	g.seen(at, admitted, n-admitted)
	return admitted
}

// next is when one would be admitted, from at on, if nothing else is sent.
func (g *ghost) next(at float64) float64 {
	if g.room(at) >= 1 {
		return at
	}
	if g.m.own {
		return g.nextOwn()
	}
	switch w := g.m.window; g.m.algorithm {
	case comporta.SlidingLog:
		over := g.taken + 1 - g.limit
		for _, e := range g.log[g.head:] {
			if over -= e.units; over <= 0 {
				return e.at + w
			}
		}
		return at + w
	case comporta.FixedWindow:
		return g.m.boundary + (g.k+1)*w
	case comporta.SlidingCounter:
		start, free := g.m.boundary+g.k*w, g.limit-1
		if g.cur <= free && g.prev > 0 {
			return start + w - (free-g.cur)*w/g.prev
		}
		return start + 2*w - free*w/max(g.cur, 1)
	default:
		return at + (g.level+1-g.limit)*w
	}
}

// moveOwn ends a window that requests began, and begins the period after one in which
// there were some.
func (g *ghost) moveOwn(at float64) {
	over := (at - g.start) / g.m.window
	switch {
	case !g.begun || over < 1:
	case g.m.algorithm == comporta.SlidingCounter && over < 2:
		g.prev, g.cur = g.cur, 0
		g.start += g.m.window
	default:
		g.prev, g.cur, g.begun = 0, 0, false
	}
}

// nextOwn is when one would be admitted, of a window that is full.
func (g *ghost) nextOwn() float64 {
	w := g.m.window
	if g.m.algorithm == comporta.FixedWindow {
		return g.start + w
	}
	if free := g.limit - g.cur; free >= 1 && g.prev > 0 { // rounded down, what is left must be under free
		return g.start + w - free*w/g.prev
	}
	return g.start + 2*w - min(1, g.limit/max(g.cur, 1))*w
}
