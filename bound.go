package comporta

import (
	"math"
	"time"
)

// Bound is the most units that the rule lets go on in any half-open window of
// that length, wherever it begins, if no take is settled upwards and no clock is
// at fault. It is MaxInt64 where there is no bound or it is larger than that.
//
// With max_wait a request counts when it goes on, after its delay. For a quota
// in a zone other than UTC, clock changes of up to an hour are reckoned with.
func (r *Rule) Bound(over time.Duration) int64 {
	t := int64(over / time.Microsecond)
	if over%time.Microsecond > 0 {
		t++
	}
	switch {
	case r.limit.Unlimited && t > 0:
		return math.MaxInt64
	case r.full == 0 || t <= 0:
		return 0
	case r.limit.Algorithm.Bucket(): // B, and what flows in meanwhile
		return plus(r.full, portion(r.limit.Limit, t, r.window))
	case r.limit.Calendar != nil:
		return portion(r.full, r.limit.Calendar.touched(t), 1)
	}
	switch r.limit.Algorithm {
	case FixedWindow: // the windows touched
		return portion(r.full, touched(t, r.window), 1)
	case SlidingCounter:
		// At most L in each window whole or begun before; in the last, of which it
		// reaches e = l − 1 µs, used = prev·(W − e)/W + cur ≤ L leaves the two together
		// at most L + L·e/W.
		return plus(r.full, portion(r.full, max(0, t-2), r.window))
	default: // a sliding log: L in each W
		return portion(r.full, (t-1)/r.window+1, 1)
	}
}

// portion is a·b / c rounded down, or MaxInt64 where it is more.
func portion(a, b, c int64) int64 {
	product := mul(uint64(a), uint64(b))
	if !product.less(mul(math.MaxInt64, uint64(c))) {
		return math.MaxInt64
	}
	return product.down(uint64(c))
}

// plus is a + b, or MaxInt64 where it is more.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// touched is how many windows of length w one of length t may touch.
func touched(t, w int64) int64 {
	if t == 1 {
		return 1
	}
	return (t-2)/w + 2 // the two at the ends, of which it needs one microsecond each
}

// touched is how many periods a window of t microseconds may touch.
func (c *Calendar) touched(t int64) int64 {
	const day = 24 * 3600e6
	if t == 1 {
		return 1
	}
	if c.zone() != time.UTC {
		t += 3600e6 // the hour that a zone may skip
	}
	switch c.Period {
	case Day:
		return touched(t, day)
	case Week:
		return touched(t, 7*day)
	case Year:
		return touched(t, 365*day)
	}
	// Of months the shortest runs of whole ones count: February, February and March, …
	most := int64(1)
	for first := time.January; first <= time.December; first++ {
		n, left := int64(2), t-2
		for m := first; ; m++ {
			if left -= int64(daysIn(2001, (m-1)%12+1)) * day; left < 0 {
				break
			}
			n++
		}
		most = max(most, n)
	}
	return most
}
