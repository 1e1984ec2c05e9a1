package sim

import (
	"math"
	"time"
)

// axis is the stretch of time that a drawing shows.
type axis struct{ from, to time.Duration }

// axis is from time 0, or the first arrival where that is much later, to the last
// arrival or the last that goes on. All runs share it, so that they can be compared.
func (r *Report) axis() axis {
	first, last := longest, time.Duration(0)
	for _, run := range r.Runs {
		for i := range run.Answers {
			first = min(first, run.Answers[i].At)
			last = max(last, run.Answers[i].Leaves())
		}
	}
	if first <= (last-first)/2 {
		first = 0
	}
	if last == first {
		last += time.Second
	}
	return axis{first, last}
}

// place is where t lies among n places, the first at from, the last at to.
func (a axis) place(t time.Duration, n int) int {
	return int(math.Round(float64(t-a.from) / float64(a.to-a.from) * float64(n-1)))
}

// steps are the distances between ticks that people find easy to count by.
var steps = func() (all []time.Duration) {
	for unit := time.Microsecond; unit < time.Second; unit *= 10 {
		all = append(all, unit, 2*unit, 5*unit)
	}
	for _, unit := range []time.Duration{time.Second, time.Minute} {
		all = append(all, unit, 2*unit, 5*unit, 10*unit, 15*unit, 30*unit)
	}
	const day = 24 * time.Hour
	all = append(all, time.Hour, 2*time.Hour, 3*time.Hour, 6*time.Hour, 12*time.Hour)
	for unit := day; unit <= 10_000*day; unit *= 10 {
		all = append(all, unit, 2*unit, 5*unit)
	}
	return all
}()

// ticks are at most n+1 times on the axis, at whole multiples of an easy step.
func (a axis) ticks(n int) (ticks []time.Duration) {
	step := steps[len(steps)-1]
	for _, s := range steps {
		if (a.to-a.from)/s <= time.Duration(n) {
			step = s
			break
		}
	}
	for t := (a.from + step - 1) / step * step; t <= a.to; t += step {
		ticks = append(ticks, t)
	}
	return ticks
}

// bar is what happened at one place of a drawing, in units.
type bar struct {
	arrived  float64
	admitted float64 // of those that arrived here
	left     float64 // of those that went on here, having arrived here or before
}

// bars are a run's, at n places. A drawing does not need exact sums, and units
// may be too many for an integer.
func (a axis) bars(run *Run, n int) []bar {
	bars := make([]bar, n)
	for i := range run.Answers {
		answer := &run.Answers[i]
		units := float64(answer.Cost)
		at := &bars[a.place(answer.At, n)]
		at.arrived += units
		if answer.Allowed {
			at.admitted += units
			bars[a.place(answer.Leaves(), n)].left += units
		}
	}
	return bars
}

// tallest is the largest arrival or leaving of them all.
func tallest(bars []bar) (units float64) {
	for _, b := range bars {
		units = max(units, b.arrived, b.left)
	}
	return units
}

// gap is the smallest distance between two places where something happened.
func gap(bars []bar) int {
	least, last := len(bars), -len(bars)
	for i, b := range bars {
		if b.arrived > 0 || b.left > 0 {
			least = min(least, i-last)
			last = i
		}
	}
	return least
}
