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
	// jitter is how much longer answers usually take at most, and longest the most that
	// one took: of those that the server did not hold back.
	jitter, longest float64
	lost            int // answers that never came
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
			e.lost += e.groups[len(e.groups)-1].lost
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
			over = e.longest
		}
		at := s.Sent.Sub(begun).Seconds() + e.trip/2
		g.over = max(g.over, min(max(over, 0), e.longest))
		g.first = min(g.first, at)
		g.last = max(g.last, at+min(max(over, 0), e.longest))
	}
	if f.pending > 0 {
		g.last = max(g.last, sent+e.longest)
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
	var free, held []float64 // how late what was denied came, and what was admitted
	sent, pending := 0, 0
	for _, f := range flights {
		sent += len(f.shots) + f.pending
		pending += f.pending
		for i := range f.shots {
			over := f.shots[i].Received.Sub(f.shots[i].Sent).Seconds() - e.trip
			switch {
			case f.shots[i].Denied():
				free = append(free, over)
			case f.shots[i].Admitted():
				held = append(held, over)
			}
		}
	}
	slices.Sort(free)
	slices.Sort(held)
	all := free
	if len(free) > 0 && pending > max(1, sent/10) || len(free) > 4 && longest(held) > 1.5*longest(free)+0.03 {
		e.holds = true
	} else {
		all = append(slices.Clone(free), held...)
		slices.Sort(all)
	}
	e.longest = longest(all)
	e.jitter = e.longest
	if n := len(all); n >= 20 { // a few that took far longer do not count
		e.jitter = min(e.longest, 1.25*all[n*95/100])
	}
}

// longest is the last of what is sorted.
func longest(sorted []float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)-1]
}

// span is the time from the first to the last that was seen.
func (e *evidence) span() float64 {
	if len(e.groups) == 0 {
		return 0
	}
	return e.groups[len(e.groups)-1].last - e.groups[0].first
}
