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

// A layout says how an algorithm's numbers lie in the count, as widths in bits,
// from the lowest on.
type layout struct{ a, b, c uint }

var layouts = [...]layout{
	comporta.TokenBucket:    {a: 52, b: 40},
	comporta.LeakyBucket:    {a: 46, b: 22, c: 24},
	comporta.FixedWindow:    {a: 46, b: 46},
	comporta.SlidingCounter: {a: 46, b: 46},
	comporta.SlidingLog:     {a: 32},
}

// placeBias centres how far the last place of a leaky bucket lies from the
// instant of its last change: a little after it in a burst, before it after a settle.
const placeBias = 1 << 23

// pack makes words 1 (without its hash bits), 2 and 3 of a state, if it fits.
func pack(s *comporta.State, algorithm comporta.Algorithm, rule int, ring uint32) (w1, w2, w3 uint64, ok bool) {
	var a, b, c int64
	switch algorithm {
	case comporta.TokenBucket:
		a, b = s.Full, s.Part
	case comporta.LeakyBucket:
		a, b, c = s.Full, s.Part, int64(s.Place-s.At)+placeBias
	case comporta.SlidingLog:
		a = int64(ring)
	default:
		a, b = s.Cur, s.Prev
	}
	l := &layouts[algorithm]
	if uint64(s.At)>>atBits|uint64(a)>>l.a|uint64(b)>>l.b|uint64(c)>>l.c != 0 {
		return 0, 0, 0, false
	}
	lo := uint64(a) | uint64(b)<<l.a // a shift past 63, where there is no b or c, is of 0
	hi := uint64(b)>>(64-l.a) | uint64(c)<<(l.a+l.b-64)
	return uint64(rule)<<ruleShift | hi>>lowBits, uint64(s.At)<<lowBits | hi&(1<<lowBits-1), lo, true
}

// unpack is the state in words 1 to 3, and a sliding log's ring.
func unpack(s *comporta.State, algorithm comporta.Algorithm, w1, w2, w3 uint64) (ring uint32) {
	hi, lo := w1&ruleMask<<lowBits|w2&(1<<lowBits-1), w3
	s.At = comporta.Instant(w2 >> lowBits)
	l := &layouts[algorithm]
	a := int64(lo & (1<<l.a - 1))
	b := int64((lo>>l.a | hi<<(64-l.a)) & (1<<l.b - 1))
	switch algorithm {
	case comporta.TokenBucket:
		s.Full, s.Part = a, b
	case comporta.LeakyBucket:
		s.Full, s.Part = a, b
		s.Place = s.At + comporta.Instant(hi>>(l.a+l.b-64)) - placeBias
	case comporta.SlidingLog:
		return uint32(a)
	default:
		s.Cur, s.Prev = a, b
	}
	return 0
}
