package main

import (
	"math/bits"
	"time"
)

// Latencies counts durations in classes that are 3 % wide at most: 32 of each
// power of two of nanoseconds.
type latencies [1280]uint32

const classBits = 5

func (l *latencies) add(d time.Duration) { l[min(class(uint64(max(d, 0))), len(l)-1)]++ }

func class(ns uint64) int {
	shift := max(bits.Len64(ns)-classBits-1, 0)
	return shift<<classBits + int(ns>>shift)
}

// least is the shortest duration of a class.
func least(class int) time.Duration {
	shift := max(class>>classBits-1, 0)
	return time.Duration(class-shift<<classBits) << shift
}

func (l *latencies) merge(other *latencies) {
	for i, n := range other {
		l[i] += n
	}
}

// percentile is the duration that so many percent do not exceed.
func (l *latencies) percentile(percent float64) time.Duration {
	var total, below uint64
	for _, n := range l {
		total += uint64(n)
	}
	for i, n := range l {
		if below += uint64(n); n > 0 && float64(below) >= float64(total)*percent/100 {
			return least(i + 1)
		}
	}
	return 0
}
