package probe

import (
	"math"
	"slices"
)

// A queue is what the answers of one volley tell of a leaky bucket: they come evenly
// spaced, by one unit's time each.
type queue struct {
	known bool
	unit  Estimate // seconds
}

// measureQueue takes the longest line of answers.
func (e *evidence) measureQueue() {
	if !e.holds {
		return
	}
	longest := 0.0
	for i := range e.groups {
		var came []float64
		for k := range e.groups[i].shots {
			if s := &e.groups[i].shots[k]; s.Admitted() {
				came = append(came, s.Received.Sub(s.Sent).Seconds())
			}
		}
		if len(came) < 4 {
			continue
		}
		slices.Sort(came)
		n := len(came) - 1
		took := came[n] - came[0]
		if took < 3*e.jitter || took <= longest {
			continue
		}
		// Even? The middle one came in the middle, and so on.
		off := 0.0
		for k, c := range came {
			off = max(off, math.Abs(c-came[0]-took*float64(k)/float64(n)))
		}
		if off > 2*e.jitter+0.002 {
			continue
		}
		longest = took
		// The jitter stretches both ends; within, who overtook whom evens out.
		cut := 0
		if n > 10 {
			cut = n / 10
		}
		inner := float64(n - 2*cut)
		unit := (came[n-cut] - came[cut]) / inner
		doubt := e.jitter
		if cut > 0 && float64(cut)*unit > e.jitter {
			doubt = min(doubt, 3*math.Sqrt(e.jitter*unit)+0.001)
		}
		e.queue = queue{true, Estimate{unit, unit - doubt/inner, unit + doubt/inner}}
		if lost := float64(e.groups[i].lost); lost > 0 { // they had places too
			n := float64(n + 1)
			e.queue.unit.Value *= n / (n + lost)
			e.queue.unit.Low *= n / (n + lost)
		}
	}
}

// measureThere estimates how much of the jitter is on the way there. Of a volley,
// those are denied that arrive late: the more their answers come later than those of
// single shots, and the earlier the others', the more of the jitter is there. A unit
// comes back each unit seconds while a volley arrives.
func (e *evidence) measureThere(unit float64) {
	var base, singles float64
	for i := range e.groups {
		g := &e.groups[i]
		if len(g.shots) != 1 || g.lost > 0 {
			continue
		}
		if over := g.shots[0].Received.Sub(g.shots[0].Sent).Seconds() - e.trip; over <= e.jitter { // not held back
			base += over
			singles++
		}
	}
	e.there = e.jitter / 2
	if e.jitter <= 0 {
		return
	}
	// Least squares of lateness = there · share, beginning with half the jitter as if
	// one shot had told so.
	sum, squares := e.there, 1.0
	if back, w := e.measureBack(); w > 0 {
		sum += w * (e.jitter - back)
		squares += w
	}
	if singles < 3 {
		e.there = min(max(sum/squares, 0.05*e.jitter), 0.95*e.jitter)
		return
	}
	base /= singles
	for i := range e.groups {
		g := &e.groups[i]
		n := float64(len(g.shots))
		if g.admitted == 0 || g.denied == 0 || n < 5 {
			continue
		}
		again := min(0.95, e.there/(n*unit)) // the part that is admitted once it is empty
		empty := max(0, (float64(g.admitted)/n-again)/(1-again))
		var over [2]float64
		for k := range g.shots {
			switch s := &g.shots[k]; {
			case s.Denied():
				over[1] += s.Received.Sub(s.Sent).Seconds() - e.trip
			case s.Admitted():
				over[0] += s.Received.Sub(s.Sent).Seconds() - e.trip
			}
		}
		tell := func(over, count, share float64) {
			w := count / (1 + count/singles)
			sum += w * share * (over/count - base)
			squares += w * share * share
		}
		tell(over[1], float64(g.denied), empty/2)
		if !e.holds {
			early := empty*empty/2 + again*(1-empty)*(1+empty)/2
			tell(over[0], float64(g.admitted), early/(empty+again*(1-empty))-0.5)
		}
	}
	e.there = min(max(sum/squares, 0.05*e.jitter), 0.95*e.jitter)
}

// measureBack estimates the jitter on the way back, with its weight, from the answers
// of a leaky bucket: they leave evenly, so all that is uneven happened on the way. In
// a row of points a unit apart that are each shifted by up to back, the k-th lies off
// by a variance of back · unit / 6.
func (e *evidence) measureBack() (back, weight float64) {
	if !e.queue.known {
		return 0, 0
	}
	unit := e.queue.unit.Value
	rows := 0.0 // independent stretches
	for i := range e.groups {
		var came []float64
		for k := range e.groups[i].shots {
			if s := &e.groups[i].shots[k]; s.Admitted() {
				came = append(came, s.Received.Sub(s.Sent).Seconds())
			}
		}
		slices.Sort(came)
		if cut := int(e.jitter/unit) + 1; len(came) > 2*cut+10 {
			came = came[cut : len(came)-cut] // the ends are stretched
		} else {
			continue
		}
		n := float64(len(came))
		slope, mid := line(came)
		v := 0.0
		for k, c := range came {
			off := c - mid - slope*(float64(k)-(n-1)/2)
			v += off * off
		}
		back += 6 * v / slope
		rows += n
	}
	if rows == 0 {
		return 0, 0
	}
	back = min(back/rows, e.jitter)
	stretches := rows * unit / max(back, unit)
	return back, stretches * 0.03 * e.jitter * e.jitter / max(back*back, unit*unit/6)
}

// line is the straight line nearest to what came: its slope, and its middle.
func line(came []float64) (slope, mid float64) {
	n := float64(len(came))
	var up float64
	for k, c := range came {
		mid += c / n
		up += (float64(k) - (n-1)/2) * c
	}
	return up / (n * (n*n - 1) / 12), mid
}
