package probe

import (
	"cmp"
	"math"
	"slices"
)

// What servers tell of their limits in headers is taken as one more witness, who may
// lie: where it lies within what was seen, it is likelier than a guess; where it does
// not, it is told as wrong. It never makes an algorithm likelier.

// A saying is a limit and a window that headers told most often; 0 where they did not.
type saying struct {
	limit, window float64
	times         int
}

// said is what most answers say of a limit of requests.
func (e *evidence) said() (s saying) {
	limits, windows := map[float64]int{}, map[float64]int{}
	for i := range e.groups {
		for k := range e.groups[i].shots {
			for _, h := range e.groups[i].shots[k].Hints {
				if h.Unit != "" && h.Unit != "requests" {
					continue
				}
				if h.Limit > 0 {
					limits[float64(h.Limit)]++
				}
				if h.Window > 0 {
					windows[h.Window.Seconds()]++
				}
				s.times++
			}
		}
	}
	s.limit, s.window = most(limits), most(windows)
	return s
}

func most(counts map[float64]int) (best float64) {
	for _, v := range slices.SortedFunc(keys(counts), cmp.Compare[float64]) {
		if counts[v] > counts[best] {
			best = v
		}
	}
	return best
}

func keys(counts map[float64]int) func(func(float64) bool) {
	return func(yield func(float64) bool) {
		for v := range counts {
			if !yield(v) {
				return
			}
		}
	}
}

// hear compares the finding with what headers say, and takes their numbers where they
// lie within its ranges.
func (f *Finding) hear(s saying) {
	if s.times == 0 {
		return
	}
	units := &f.Units
	if f.Burst.Value > 0 {
		units = &f.Burst // headers tell what a full budget holds
	}
	if s.limit > 0 {
		if s.limit >= units.Low && s.limit <= units.High {
			if s.limit != units.Value {
				units.Value = s.limit
				f.tell("headers say %g, which fits what was seen: it is taken", s.limit)
			} else {
				f.tell("headers say %g too", s.limit)
			}
			f.setUnits(int64(s.limit))
		} else {
			f.tell("headers say %g, which is not what was seen (%g to %g): they are not believed", s.limit, units.Low, units.High)
		}
	}
	if s.window > 0 {
		// It is written in whole seconds, rounded up; of buckets it is the time to fill.
		low, high := f.Window.Low, f.Window.High
		if f.Burst.Value > 0 && f.Units.Value > 0 {
			fill := f.Burst.Value / f.Units.Value
			low, high = low*fill, high*fill
		}
		if s.window >= math.Floor(low) && s.window <= math.Ceil(high) {
			f.tell("headers say a window of %g s, which fits", s.window)
		} else {
			f.tell("headers say a window of %g s, which is not what was seen (%.4g to %.4g s): they are not believed", s.window, low, high)
		}
	}
}

// setUnits changes the limit, or a bucket's burst, in the limit as written.
func (f *Finding) setUnits(n int64) {
	switch {
	case f.Burst.Value == 0:
		f.Limit.Limit = n
	case f.Limit.Limit != n:
		f.Limit.Burst = n
	default:
		f.Limit.Burst = 0
	}
}
