package memstore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/comporta/comporta"
)

// Of every algorithm, and of a state that fits no slot, a reset leaves nothing:
// not in memory, not in the file after a kill.
func TestAResetLeavesNothing(t *testing.T) {
	w, path := newWorld(t), filepath.Join(t.TempDir(), "comporta.state")
	s, _ := w.open(t, path)
	fresh := w.left(t, s)
	w.spend(t, s, 0)
	w.spend(t, s, 1)
	s.save()
	keys := []comporta.Key{{Limit: "limit-0", Identity: "nobody"}}
	for i := range w.rules {
		for k := range 3 {
			key := comporta.Key{Limit: fmt.Sprint("limit-", i), Identity: fmt.Sprint(k)}
			keys = append(keys, key, key)
		}
	}
	if err := s.Reset(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	if got := w.left(t, s); got != fresh {
		t.Errorf("before it all:\n%s\nafter the reset:\n%s", fresh, got)
	}
	if st := s.Stats(); st.Keys != 0 || st.LogBytes != 0 {
		t.Errorf("after the reset %+v", st)
	}
	s.save()
	again, _ := w.open(t, copyFile(t, path))
	if n := again.Stats().Keys; n != 0 {
		t.Errorf("%d keys are back that were reset", n)
	}
}
