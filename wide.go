package comporta

import "math/bits"

// wide is an unsigned 128-bit integer. Buckets need it: 10^12 units of a window
// of 400 days are 3.5·10^25 ticks. Most limits never leave the lower word, and
// division takes the short way then.
type wide struct{ hi, lo uint64 }

func mul(a, b uint64) wide {
	hi, lo := bits.Mul64(a, b)
	return wide{hi, lo}
}

func (a wide) add(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return wide{hi, lo}
}

// sub is a − b; a is at least b.
func (a wide) sub(b wide) wide {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return wide{hi, lo}
}

func (a wide) less(b wide) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a wide) zero() bool { return a.hi|a.lo == 0 }

// div is a / d rounded down, and the rest. The quotient fits in 64 bits: every
// caller divides a product by one of its factors' size.
func (a wide) div(d uint64) (quo, rem uint64) {
	if d == 1 && a.hi == 0 {
		return a.lo, 0
	}
	if a.hi == 0 {
		return a.lo / d, a.lo % d
	}
	return bits.Div64(a.hi, a.lo, d)
}

// up is a / d rounded up.
func (a wide) up(d uint64) int64 {
	quo, rem := a.div(d)
	if rem > 0 {
		quo++
	}
	return int64(quo)
}

// down is a / d rounded down.
func (a wide) down(d uint64) int64 {
	quo, _ := a.div(d)
	return int64(quo)
}
