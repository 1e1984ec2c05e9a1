package probe

import (
	"math"
	"slices"

	"github.com/comporta/comporta"
)

// delays say whether admitted requests were answered late as a queue would have it.
type delays struct {
	known, held   bool
	longest       float64 // as a queue would have it
	queued, plain float64 // how far the answers were off, with a queue and without
	shots         int
}

// delays compares how late answers came with how late a leaky bucket would have let
// them: the k-th in its queue by k units' time.
func (e *evidence) delays(found []search) (d delays) {
	best := delays{}
	for i := range found {
		if found[i].algorithm != comporta.TokenBucket || len(found[i].fitting) == 0 {
			continue
		}
		models, _ := e.tighten(&found[i])
		m := model{variant: found[i].variant, window: middle(models)}
		d := e.delaysOf(&m, float64(number(models, m.window, false)))
		if d.known && (!best.known || d.queued/d.plain < best.queued/best.plain) {
			best = d
		}
	}
	return best
}

func (e *evidence) delaysOf(m *model, limit float64) (d delays) {
	for _, q := range e.inLine(m, limit) {
		queue := q.place*m.window - q.since
		d.longest = max(d.longest, queue)
		d.queued += (q.late - queue) * (q.late - queue)
		d.plain += q.late * q.late
		d.shots++
	}
	d.known = d.longest > 0.5*e.jitter+0.01 && d.shots > 2
	d.held = d.queued < 0.5*d.plain
	return d
}

// A queued request is one that a leaky bucket would have let wait: until the place
// units before it, of its busy period, have left; since seconds after that began.
type queued struct{ place, since, late float64 }

// inLine are all admitted requests as a leaky bucket would have lined them up, and how
// late their answers were beyond what the way usually takes.
func (e *evidence) inLine(m *model, limit float64) (all []queued) {
	usual, n := 0.0, 0
	for i := range e.groups {
		for k := range e.groups[i].shots {
			if s := &e.groups[i].shots[k]; s.Denied() {
				usual += s.Received.Sub(s.Sent).Seconds() - e.trip
				n++
			}
		}
	}
	if n > 0 {
		usual /= float64(n)
	}
	g := &ghost{m: m, limit: limit, at: math.Inf(-1)}
	place, begun := 0.0, 0.0
	for i := range e.groups {
		x := &e.groups[i]
		first, last := e.arrival(x)
		at := (first + last) / 2
		if g.move(at); g.level <= 0 {
			place, begun = 0, at
		}
		var late []float64
		for k := range x.shots {
			if s := &x.shots[k]; s.Admitted() {
				late = append(late, s.Received.Sub(s.Sent).Seconds()-e.trip-usual)
			}
		}
		slices.Sort(late)
		for k, l := range late {
			all = append(all, queued{place + float64(k), at - begun, l})
		}
		place += float64(x.admitted)
		g.seen(at, float64(x.admitted), float64(x.denied))
		if m.attempts && x.denied > 0 { // full, whatever came before
			place, begun = limit, at
		}
	}
	return all
}

// unitOf is a unit's time by how late the answers of a leaky bucket came, by least
// squares; 0 where none waited.
func (e *evidence) unitOf(m *model, limit float64) float64 {
	var sum, squares float64
	for _, q := range e.inLine(m, limit) {
		if q.place > 0 {
			sum += (q.late + q.since) * q.place
			squares += q.place * q.place
		}
	}
	if squares == 0 {
		return 0
	}
	return sum / squares
}
