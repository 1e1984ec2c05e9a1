package memstore

import (
	"testing"
	"time"

	"github.com/comporta/comporta"
	"pgregory.net/rapid"
)

// A ring answers as the plain log does, whatever edits have come.
func TestRingIsALog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := comporta.Limit{Algorithm: comporta.SlidingLog, Limit: 1 << 20, Window: time.Second}
		if rapid.Bool().Draw(t, "two words an entry") {
			limit = comporta.Limit{Algorithm: comporta.SlidingLog, Limit: comporta.MaxUnits, Window: comporta.MaxWindow}
		}
		rule, err := limit.Compile()
		if err != nil {
			t.Fatal(err)
		}
		var r ring
		var plain comporta.Entries
		now := comporta.Instant(rapid.Int64Range(-1e6, 1e15).Draw(t, "start"))
		for range rapid.IntRange(1, 60).Draw(t, "edits") {
			now += comporta.Instant(rapid.Int64Range(0, 20).Draw(t, "pause"))
			near := func(name string) comporta.Instant {
				return now - comporta.Instant(rapid.Int64Range(0, 200).Draw(t, name))
			}
			var e comporta.Edit
			sum, _ := plain.After(-1 << 62)
			switch rapid.SampledFrom([]string{"add", "drop", "cut", "clamp", "back"}).Draw(t, "edit") {
			case "add":
				e.Add, e.AddAt = rapid.Int64Range(1, 9).Draw(t, "add"), now
			case "drop":
				e.Dropping, e.Drop = true, near("drop")
			case "cut":
				if sum > 0 {
					e.Cut = rapid.Int64Range(0, sum).Draw(t, "cut")
				}
			case "clamp":
				now = near("clamp")
				e.Clamping, e.Clamp = true, now
			case "back":
				e.BackAt = near("back")
				e.Back = rapid.Int64Range(0, plain.At(e.BackAt)).Draw(t, "back")
			}
			plain = plain.Apply(e)
			r.apply(&e, rule, false)
			same(t, &r, plain, near("asked"))
		}
	})
}

func same(t *rapid.T, r *ring, plain comporta.Entries, at comporta.Instant) {
	wantSum, wantLast := plain.After(at)
	sum, last := r.After(at)
	if sum != wantSum || sum > 0 && last != wantLast {
		t.Fatalf("after %d: %d up to %d, want %d up to %d", at, sum, last, wantSum, wantLast)
	}
	if got, want := r.At(at), plain.At(at); got != want {
		t.Fatalf("at %d: %d, want %d", at, got, want)
	}
	for n := int64(1); n <= wantSum; n += 1 + wantSum/7 {
		if got, want := r.Reach(at, n), plain.Reach(at, n); got != want {
			t.Fatalf("%d units after %d are reached at %d, want %d", n, at, got, want)
		}
	}
}

// A ring that is short of memory keeps the whole sum and never lets it leave early.
func TestRingShortOfMemoryOnlyRefusesMore(t *testing.T) {
	rule, err := comporta.Limit{Algorithm: comporta.SlidingLog, Limit: 1000, Window: time.Second}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	var r ring
	var plain comporta.Entries
	for i := range comporta.Instant(100) {
		e := comporta.Edit{Add: 1, AddAt: i * 10}
		plain = plain.Apply(e)
		r.apply(&e, rule, i >= 16)
		for asked := comporta.Instant(-1); asked < i*10; asked += 7 {
			got, _ := r.After(asked)
			if want, _ := plain.After(asked); got < want {
				t.Fatalf("after %d: %d units are left of %d", asked, got, want)
			}
		}
	}
	if r.bytes() > 8*30 {
		t.Errorf("the ring grew to %d bytes", r.bytes())
	}
}
