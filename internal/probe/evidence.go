package probe

import (
	"math"
	"slices"
	"time"
)

// A group is shots that were sent at once, or one shot. The server decided on each
// of them between first and last.
type group struct {
	first, last float64 // seconds since the learner began
	admitted    int
	denied      int
	lost        int     // without an answer: perhaps counted, perhaps not
	over        float64 // the longest excess over the shortest trip
	sent        float64 // and half that trip
	shots       []Shot
}

// Evidence is all that was seen, as groups by the time at which they were sent, and
// what it says of the way to the server.
type evidence struct {
	groups []group
	// trip is the shortest time from sending to the answer: what is over it is jitter
	// (or a delay that the server makes). Half of it is taken to be the way there: a
	// constant error in that moves all instants alike and changes nothing.
	trip float64
	// jitter is the longest excess over trip of answers that the server did not hold back.
	jitter float64
	// there is how much of the jitter is on the way there.
	there float64
	// shift moves the grids of searches, so that two do not look at the same numbers.
	shift float64
	// holds says that admitted requests are answered late, and queue how.
	holds bool
	queue queue
}

// A flight is what was sent at once, as far as it is known now.
type flight struct {
	sent    time.Time
	shots   []Shot // that came back
	pending int
}

// newEvidence orders what was seen.
func newEvidence(flights []flight, begun time.Time) *evidence {
	e := &evidence{trip: math.Inf(1)}
	for _, f := range flights {
		for i := range f.shots {
			if f.shots[i].Status != 0 {
				e.trip = min(e.trip, f.shots[i].Received.Sub(f.shots[i].Sent).Seconds())
			}
		}
	}
	e.measure(flights)
	for _, f := range flights {
		if len(f.shots)+f.pending > 0 {
			e.groups = append(e.groups, e.group(f, begun))
		}
	}
	slices.SortStableFunc(e.groups, func(a, b group) int {
		switch {
		case a.first < b.first:
			return -1
		case a.first > b.first:
			return 1
		}
		return 0
	})
	e.measureQueue()
	e.measureThere(math.Inf(1))
	for i := 1; i < len(e.groups); i++ { // what left later may not be decided on much earlier
		e.groups[i].last = max(e.groups[i].last, e.groups[i-1].last)
	}
	return e
}

func (e *evidence) group(f flight, begun time.Time) group {
	sent := f.sent.Sub(begun).Seconds() + e.trip/2
	g := group{first: sent, last: sent, sent: sent, shots: f.shots}
	for i := range f.shots {
		s := &f.shots[i]
		over := s.Received.Sub(s.Sent).Seconds() - e.trip
		switch {
		case s.Admitted():
			g.admitted++
		case s.Denied():
			g.denied++
		default:
			g.lost++
			over = e.jitter
		}
		at := s.Sent.Sub(begun).Seconds() + e.trip/2
		g.over = max(g.over, min(max(over, 0), e.jitter))
		g.first = min(g.first, at)
		g.last = max(g.last, at+min(max(over, 0), e.jitter))
	}
	if f.pending > 0 {
		g.last = max(g.last, sent+e.jitter)
		if e.holds { // what is denied comes back at once
			g.admitted += f.pending
		} else {
			g.lost += f.pending
		}
	}
	return g
}

// measure finds how much the way varies, and whether the server holds back what it
// admits: then only what it denies tells of the way.
func (e *evidence) measure(flights []flight) {
	var free, held float64 // the longest of what was denied, and of what was admitted
	denied, sent, pending := 0, 0, 0
	for _, f := range flights {
		sent += len(f.shots) + f.pending
		pending += f.pending
		for i := range f.shots {
			over := f.shots[i].Received.Sub(f.shots[i].Sent).Seconds() - e.trip
			switch {
			case f.shots[i].Denied():
				denied++
				free = max(free, over)
			case f.shots[i].Admitted():
				held = max(held, over)
			}
		}
	}
	e.jitter = max(free, held)
	if denied > 0 && pending > max(1, sent/10) || denied > 4 && held > 1.5*free+0.03 {
		e.holds, e.jitter = true, free
	}
}

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

// span is the time from the first to the last that was seen.
func (e *evidence) span() float64 {
	if len(e.groups) == 0 {
		return 0
	}
	return e.groups[len(e.groups)-1].last - e.groups[0].first
}
