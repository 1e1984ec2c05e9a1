package memstore

import (
	"testing"

	"github.com/comporta/comporta"
	"pgregory.net/rapid"
)

// What a slot packs, it unpacks: at the edges of every field and between.
func TestSlotsKeepStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		algorithm := rapid.SampledFrom(comporta.Algorithms()).Draw(t, "algorithm")
		l := map[comporta.Algorithm]struct{ a, b, c uint }{
			comporta.TokenBucket:    {tokenFull, tokenPart, 0},
			comporta.LeakyBucket:    {leakyFull, leakyPart, leakyLast},
			comporta.FixedWindow:    {windowCur, windowPrev, 0},
			comporta.SlidingCounter: {windowCur, windowPrev, 0},
			comporta.SlidingLog:     {logRing, 0, 0},
		}[algorithm]
		field := func(name string, width uint) int64 {
			if width == 0 {
				return 0
			}
			return rapid.Int64Range(0, 1<<width-1).Draw(t, name)
		}
		var s comporta.State
		s.At = comporta.Instant(field("at", atBits))
		a, b, c := field("a", l.a), field("b", l.b), field("c", l.c)
		var ring uint32
		switch algorithm {
		case comporta.TokenBucket:
			s.Full, s.Part = a, b
		case comporta.LeakyBucket:
			s.Full, s.Part, s.Place = a, b, s.At+comporta.Instant(c)-placeBias
		case comporta.SlidingLog:
			ring = uint32(a)
		default:
			s.Cur, s.Prev = a, b
		}
		rule := int(field("rule", 16))
		w1, w2, w3, ok := pack(&s, algorithm, rule, ring)
		if !ok {
			t.Fatalf("%v: %+v does not fit", algorithm, s)
		}
		w1 |= hashBits(hash{lo: ^uint64(0)})
		var got comporta.State
		if r := unpack(&got, algorithm, w1, w2, w3); r != ring || got != s || slotRule(w1) != rule {
			t.Fatalf("%v: packed %+v ring %d rule %d, unpacked %+v ring %d rule %d", algorithm, s, ring, rule, got, r, slotRule(w1))
		}
	})
}

// A state that does not fit is not packed wrong: it is not packed.
func TestSlotsRefuseWhatDoesNotFit(t *testing.T) {
	for _, s := range []comporta.State{
		{At: -1}, {At: 1 << atBits}, {Full: 1 << 52}, {Part: 1 << 40}, {Full: -1},
	} {
		if _, _, _, ok := pack(&s, comporta.TokenBucket, 1, 0); ok {
			t.Errorf("%+v was packed", s)
		}
	}
	for _, s := range []comporta.State{
		{Full: 1 << 46}, {Part: 1 << 22}, {At: 0, Place: 1 << 23}, {At: 1 << 30, Place: 0},
	} {
		if _, _, _, ok := pack(&s, comporta.LeakyBucket, 1, 0); ok {
			t.Errorf("%+v was packed", s)
		}
	}
	if _, _, _, ok := pack(&comporta.State{Cur: 1 << 46}, comporta.FixedWindow, 1, 0); ok {
		t.Error("a count of 2^46 was packed")
	}
}
