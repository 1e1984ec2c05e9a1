package identity

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The table is held against a list with what was used last at its end.
func TestWhatWasUsedLongestAgoMakesRoom(t *testing.T) {
	type pair struct {
		at    byte
		value int
	}
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 5).Draw(t, "most")
		l, model := newLRU[int](most), []pair(nil)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				var order []pair
				for n := l.ends.prev; n != &l.ends; n = n.prev {
					order = append(order, pair{n.sum[0], n.value})
				}
				if !slices.Equal(order, model) || len(l.at) != len(model) {
					t.Fatalf("%v, want %v; %d in the table", order, model, len(l.at))
				}
			},
			"put": func(t *rapid.T) {
				p := pair{rapid.ByteRange(0, 7).Draw(t, "at"), rapid.Int().Draw(t, "value")}
				l.put(digest{p.at}, p.value)
				model = append(slices.DeleteFunc(model, func(o pair) bool { return o.at == p.at }), p)
				model = model[max(0, len(model)-most):]
			},
			"get": func(t *rapid.T) {
				at := rapid.ByteRange(0, 7).Draw(t, "at")
				got := l.get(digest{at})
				i := slices.IndexFunc(model, func(o pair) bool { return o.at == at })
				if (got != nil) != (i >= 0) || i >= 0 && *got != model[i].value {
					t.Fatalf("%d: %v in %v", at, got, model)
				}
				if i >= 0 {
					model = append(slices.Delete(model, i, i+1), pair{at, *got})
				}
			},
			"drop": func(t *rapid.T) {
				at := rapid.ByteRange(0, 7).Draw(t, "at")
				l.drop(digest{at})
				model = slices.DeleteFunc(model, func(o pair) bool { return o.at == at })
			},
		})
	})
}
