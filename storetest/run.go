package storetest

import (
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// An Open makes an empty store whose clock is now. It registers its own closing
// with t.Cleanup.
type Open func(t *testing.T, now func() time.Time) comporta.Store

// Run holds a store to its obligations:
//
//   - it answers every take and settle, over all algorithms, charges, quotas,
//     staggered and shadow limits, several limits in one step, changed numbers and
//     clocks that step back, as [Model] does, in every field;
//   - what no store may run is an error and changes nothing;
//   - its TakeOne, if it is a [comporta.Taker], answers as its Take;
//   - its Reset, if it is a [comporta.Resetter], makes the keys new, and no others,
//     whatever is under way;
//   - however many ask at once, it admits what one alone would be admitted.
//
// The store must have room for a few thousand keys. A failure prints the seed
// with which it is had again.
func Run(t *testing.T, open Open) { run(t, open, asking{}) }

// RunApart is Run for a store whose steps are all or nothing for one identity
// only, as it keeps identities on different servers: no step asks about two.
func RunApart(t *testing.T, open Open) { run(t, open, asking{apart: true}) }

// asking says how a store is asked: about one identity in a step, by TakeOne.
type asking struct{ apart, single bool }

func run(t *testing.T, open Open, how asking) {
	t.Run("answers as the model", func(t *testing.T) { answersAsTheModel(t, open, how) })
	how.single = true
	t.Run("TakeOne answers as Take", func(t *testing.T) { answersAsTheModel(t, open, how) })
	t.Run("keeps a log when its limit changes", func(t *testing.T) { keepsALog(t, open) })
	t.Run("refuses what no store may run", func(t *testing.T) { refuses(t, open) })
	t.Run("keeps its own strings", func(t *testing.T) { keepsItsOwnStrings(t, open) })
	t.Run("resets while many ask", func(t *testing.T) { resetsWhileManyAsk(t, open) })
	t.Run("admits no more to many at once", func(t *testing.T) { admitsNoMoreToMany(t, open) })
}
