package telemetry

import (
	"testing"

	"pgregory.net/rapid"
)

// A key with more than half and a margin for the sketch's doubt is found; without
// such a key there is no false alarm.
func TestTheSketchFindsTheMajority(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.IntRange(0, sketchRound).Draw(t, "share of key 1")
		others := rapid.SliceOfN(rapid.Uint64Range(0, 50), 20, 20).Draw(t, "other keys")
		order := rapid.SliceOfN(rapid.IntRange(0, sketchRound-1), 50, 50).Draw(t, "order")
		keys := make([]uint64, sketchRound)
		for i := range keys {
			if keys[i] = 1; i >= share {
				keys[i] = others[i%len(others)] + uint64(i)<<8 // many different ones
			}
		}
		for i, j := range order {
			keys[i*7], keys[j] = keys[j], keys[i*7]
		}
		var s sketch
		found := false
		for _, k := range keys {
			found = s.add(k)
		}
		if doubt := sketchRound / len(s.places); found && share <= sketchRound/2 || !found && share > sketchRound/2+doubt {
			t.Errorf("key 1 has %d of %d: found %v", share, sketchRound, found)
		}
	})
}

// A key that comes late takes over another's count; that part is not its own.
func TestTheSketchDoesNotBelieveInheritedCounts(t *testing.T) {
	var s sketch
	for i := range 560 {
		s.add(uint64(1000 + i))
	}
	for i := range 440 {
		if s.add(1) {
			t.Errorf("%d of %d is not most", i+1, sketchRound)
		}
	}
}
