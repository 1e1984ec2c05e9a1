package memstore

import "github.com/comporta/comporta"

// A slot is four words without a pointer:
//
//	0   the hash's upper 64 bits
//	1   32 more bits of the hash │ 16 bits rule │ 16 bits count, high part
//	2   52 bits instant of the last change │ 12 bits count, low part
//	3   64 bits count
//
// (10 more bits of the hash are the shard's number: 106 in all.) The 92 bits of
// count hold, by algorithm: cur and prev; the whole and the part of the time
// until full; for a leaky bucket its last place too; the number of a sliding
// log's ring. A state that does not fit, of absurd numbers or after a clock
// fault, lives in the shard's map of wide states, and its slot says so.
const (
	slotWords = 4

	ruleShift = 16
	ruleMask  = 0xffff
	noRule    = 0      // the slot is empty
	wideRule  = 0xffff // the state is in the shard's map

	atBits  = 52
	lowBits = 64 - atBits
)

// hashBits are the bits of the hash that word 1 keeps.
func hashBits(h hash) uint64 { return h.lo << 32 }

func slotRule(w1 uint64) int { return int(w1 >> ruleShift & ruleMask) }

// count is the 92-bit field: hi its upper 28 bits, lo its lower 64.
type count struct{ hi, lo uint64 }

// The widths in bits of an algorithm's two or three numbers, from the lowest on.
const (
	tokenFull, tokenPart            = 52, 40
	leakyFull, leakyPart, leakyLast = 46, 22, 24
	windowCur, windowPrev           = 46, 46
	logRing                         = 32
)

// placeBias centres how far the last place of a leaky bucket lies from the
// instant of its last change: a little after it in a burst, before it after a settle.
const placeBias = 1 << 23

// pack makes words 1 (without its hash bits), 2 and 3 of a state, if it fits.
func pack(s *comporta.State, algorithm comporta.Algorithm, rule int, ring uint32) (w1, w2, w3 uint64, ok bool) {
	var n count
	switch algorithm {
	case comporta.TokenBucket:
		n, ok = join(s.Full, tokenFull, s.Part, tokenPart, 0, 0)
	case comporta.LeakyBucket:
		n, ok = join(s.Full, leakyFull, s.Part, leakyPart, int64(s.Place-s.At)+placeBias, leakyLast)
	case comporta.SlidingLog:
		n, ok = count{lo: uint64(ring)}, true
	default:
		n, ok = join(s.Cur, windowCur, s.Prev, windowPrev, 0, 0)
	}
	if !ok || uint64(s.At)>>atBits != 0 {
		return 0, 0, 0, false
	}
	return uint64(rule)<<ruleShift | n.hi>>lowBits, uint64(s.At)<<lowBits | n.hi&(1<<lowBits-1), n.lo, true
}

// unpack is the state in words 1 to 3, and a sliding log's ring.
func unpack(s *comporta.State, algorithm comporta.Algorithm, w1, w2, w3 uint64) (ring uint32) {
	n := count{w1&ruleMask<<lowBits | w2&(1<<lowBits-1), w3}
	s.At = comporta.Instant(w2 >> lowBits)
	switch algorithm {
	case comporta.TokenBucket:
		s.Full, s.Part, _ = n.split(tokenFull, tokenPart)
	case comporta.LeakyBucket:
		var last int64
		s.Full, s.Part, last = n.split(leakyFull, leakyPart)
		s.Place = s.At + comporta.Instant(last) - placeBias
	case comporta.SlidingLog:
		return uint32(n.lo)
	default:
		s.Cur, s.Prev, _ = n.split(windowCur, windowPrev)
	}
	return 0
}

// join puts numbers of so many bits each one after the other; the first is of
// less than 64 bits, the first two of at least 64. It is false if one is wider.
func join(a int64, aBits uint, b int64, bBits uint, c int64, cBits uint) (count, bool) {
	ok := uint64(a)>>aBits|uint64(b)>>bBits|uint64(c)>>cBits == 0
	return count{hi: uint64(b)>>(64-aBits) | uint64(c)<<(aBits+bBits-64), lo: uint64(a) | uint64(b)<<aBits}, ok
}

// split takes apart what join put together; c is all that is left.
func (n count) split(aBits, bBits uint) (a, b, c int64) {
	return int64(n.lo & (1<<aBits - 1)),
		int64((n.lo>>aBits | n.hi<<(64-aBits)) & (1<<bBits - 1)),
		int64(n.hi >> (aBits + bBits - 64))
}
