package redisstore

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/storetest"
)

// A field of a state: its bytes, and what it is when nobody meddles.
type field struct {
	size  int
	right uint64
}

// forms are the states of the algorithms under 5/10s, just used up at now.
func forms(now comporta.Instant) map[comporta.Algorithm][]field {
	at := field{7, uint64(now)}
	l, w, b := field{5, 5}, field{6, 10_000_000}, field{5, 5}
	end := field{7, uint64(now) + 10_000_000}
	return map[comporta.Algorithm][]field{
		comporta.TokenBucket:    {{1, 1}, at, l, w, b, {7, 10_000_000}, {5, 0}},
		comporta.LeakyBucket:    {{1, 2}, at, l, w, b, {7, 10_000_000}, {5, 0}, at},
		comporta.FixedWindow:    {{1, 3}, at, l, w, {1, 0}, {6, 5}, end},
		comporta.SlidingCounter: {{1, 4}, at, l, w, {1, 0}, {6, 5}, {6, 5}, end},
		// One entry, of five units, of which the instant and the sum are doubles.
		comporta.SlidingLog: {{1, 5}, at, l, w, {7, 0}, {7, 5}, {4, 0}, {4, 1}, at, {8, math.Float64bits(float64(now))}, {8, math.Float64bits(5)}},
	}
}

// TestForgedStatesHeal: a value that has the form of a state, with whatever
// numbers, is no error, and closes a limit for no longer than a debt can.
func TestForgedStatesHeal(t *testing.T) {
	server := redistest.Start(t)
	clock := &storetest.Clock{}
	s, err := New(direct{server}, Options{Now: clock.Now, Prefix: server.Prefix, Heartbeat: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rapid.Check(t, func(t *rapid.T) {
		clock.Set(comporta.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		algorithm := rapid.SampledFrom(comporta.Algorithms()).Draw(t, "algorithm")
		limit := comporta.Limit{Algorithm: algorithm, Limit: 5, Window: 10 * time.Second}
		if rapid.Bool().Draw(t, "changed") {
			limit.Limit = 6
		}
		if algorithm != comporta.LeakyBucket && rapid.Bool().Draw(t, "attempts") {
			limit.Charge = comporta.Attempts
		}
		rule, err := limit.Compile()
		if err != nil {
			t.Fatal(err)
		}
		var value []byte
		for i, f := range forms(clock.Instant())[algorithm] {
			all := uint64(1)<<(8*f.size) - 1
			n := f.right
			if i > 0 && rapid.IntRange(0, 2).Draw(t, "forged") == 0 {
				n = rapid.SampledFrom([]uint64{0, 1, 2, f.right + 1, f.right - 1, f.right + 5_000_000, f.right + 50_000_000, all, all / 2, 1 << 53, 1 << 40, rapid.Uint64().Draw(t, "any")}).Draw(t, "number") & all
			}
			value = append(value, binary.LittleEndian.AppendUint64(nil, n)[:f.size]...)
		}
		key := comporta.Key{Limit: "a", Identity: "x"}
		server.MustDo("SET", s.keyOf(key), string(value))
		ask := func(cost int64) comporta.Taken {
			var out [1]comporta.Taken
			takes := []comporta.Take{{Key: key, Rule: rule, Cost: cost}}
			if err := s.Take(t.Context(), takes, out[:]); err != nil {
				t.Fatalf("%s: %x: %v", algorithm, value, err)
			}
			return out[0]
		}
		settle := func(r comporta.Receipt, actual int64) {
			var out [1]comporta.Taken
			err := s.Settle(t.Context(), []comporta.Settlement{{Key: key, Rule: rule, Taken: r, Actual: actual}}, out[:])
			if err != nil {
				t.Fatalf("%s: %x: %v", algorithm, value, err)
			}
		}
		before := clock.Instant()
		ask(0) // a clock at fault is noted
		for range rapid.IntRange(0, 3).Draw(t, "asked") {
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				settle(comporta.Receipt{At: before, Cost: 2, Place: before}, 1)
			case 1:
				settle(comporta.Receipt{At: before, Cost: 2, Place: before}, 3)
			default:
				ask(rapid.Int64Range(0, 6).Draw(t, "cost"))
			}
		}
		longest := 2 * rule.FillTime()
		if algorithm == comporta.TokenBucket {
			longest += comporta.MaxWindow // a state may be of a max_wait that was
		}
		clock.Advance(comporta.MaxStep + longest)
		if d := ask(0); d.Remaining != rule.Full() || d.FullAfter != 0 {
			t.Fatalf("%s: %x: not full again: %+v", algorithm, value, d)
		}
		if got := server.MustDo("EXISTS", s.keyOf(key)); got != int64(0) {
			t.Fatalf("%s: %x: full and kept", algorithm, value)
		}
	})
}
