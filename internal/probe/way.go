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

// measureQueue takes the mean of what the longer lines of answers tell: each is a row
// of points a unit apart, shifted by what the way back takes, and the straight line
// through n of them is known n³ times as well as through one.
func (e *evidence) measureQueue() {
	if !e.holds {
		return
	}
	var sum, weights, fewest float64
	for _, denials := range []bool{false, true} { // a denial that counts would shift the rest
		for i := range e.groups {
			g := &e.groups[i]
			if !denials && g.denied > 0 {
				continue
			}
			came := g.came()
			if len(came) < 4 || !e.even(came) {
				continue
			}
			n := float64(len(came))
			slope, _ := line(came)
			stretch := e.jitter / 2 / (came[len(came)-1] - came[0]) // the jitter lengthens the row
			slope /= math.Sqrt(1 + stretch*stretch)
			w := n * n * n
			lost := float64(e.missing(i)) // they had places too
			sum += w * slope * n / (n + lost)
			weights += w
			fewest += w * lost / (n + lost)
		}
		if weights > 0 {
			unit := sum / weights
			doubt := e.jitter*math.Sqrt(12/weights) + 0.002*unit
			e.queue = queue{true, Estimate{unit, unit - doubt, (unit + doubt) * (1 + fewest/weights)}}
			return
		}
	}
}

// missing is how many of a group's answers never came: the lost, and those that are
// still on their way though what was sent later is back, since a queue keeps its order.
func (e *evidence) missing(i int) int {
	g := &e.groups[i]
	n := g.lost
	for j := i + 1; j < len(e.groups); j++ {
		if e.groups[j].answered() > 0 {
			return n + g.admitted - g.answered()
		}
	}
	return n
}

// answered is how many admitted ones have come back.
func (g *group) answered() (n int) {
	for k := range g.shots {
		if g.shots[k].Admitted() {
			n++
		}
	}
	return n
}

// came is when a group's admitted requests were answered, after they were sent.
func (g *group) came() (came []float64) {
	for k := range g.shots {
		if s := &g.shots[k]; s.Admitted() {
			came = append(came, s.Received.Sub(s.Sent).Seconds())
		}
	}
	slices.Sort(came)
	return came
}

// even says whether answers came evenly, for long enough to tell: the middle one in
// the middle, and so on.
func (e *evidence) even(came []float64) bool {
	n := len(came) - 1
	took := came[n] - came[0]
	if took < 3*e.jitter {
		return false
	}
	off := 0.0
	for k, c := range came {
		off = max(off, math.Abs(c-came[0]-took*float64(k)/float64(n)))
	}
	return off <= 2*e.jitter+0.002
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
		if float64(g.admitted) < 3*e.jitter/unit { // most came in meanwhile: it began empty
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
		came := e.groups[i].came()
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
