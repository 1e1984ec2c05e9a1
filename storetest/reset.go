package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// resetsWhileManyAsk resets a key while many take from it and the clock stands:
// each reset lets one full budget more pass at most, what was taken before it is
// not given back twice, and another client's key stays as it is.
func resetsWhileManyAsk(t *testing.T, open Open) {
	const full, resets = 50, 20
	for _, algorithm := range comporta.Algorithms() {
		t.Run(algorithm.String(), func(t *testing.T) {
			clock := &Clock{}
			clock.Set(bases[1].Add(time.Microsecond)) // a second begins
			store := open(t, clock.Now)
			resetter, ok := store.(comporta.Resetter)
			if !ok {
				t.Skip("the store has no Reset")
			}
			rule := compile(t, comporta.Limit{Algorithm: algorithm, Limit: full, Window: time.Second})
			key, other := comporta.Key{Limit: "reset", Identity: "who"}, comporta.Key{Limit: "reset", Identity: "other"}
			takeOne(t, store, comporta.Take{Key: other, Rule: rule, Cost: 7})
			reset := func() {
				if err := resetter.Reset(context.Background(), []comporta.Key{key}); err != nil {
					t.Error(err)
				}
			}

			var passed atomic.Int64
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() {
					out := make([]comporta.Taken, 1)
					for range questions {
						if err := store.Take(context.Background(), []comporta.Take{{Key: key, Rule: rule, Cost: 1}}, out); err != nil {
							t.Error(err)
							return
						}
						if out[0].Allowed {
							passed.Add(1)
						}
					}
				})
			}
			wg.Go(func() {
				for range resets {
					reset()
				}
			})
			wg.Wait()
			if n := passed.Load(); n < full || n > full*(resets+1) {
				t.Errorf("with %d resets %d pass, want from %d to %d", resets, n, full, full*(resets+1))
			}

			reset()
			taken := takeOne(t, store, comporta.Take{Key: key, Rule: rule, Cost: full})
			if !taken.Allowed {
				t.Errorf("reset, and a full budget is denied: %+v", taken)
			}
			reset()
			before := comporta.Settlement{Key: key, Rule: rule, Taken: taken.Receipt}
			if err := store.Settle(t.Context(), []comporta.Settlement{before}, make([]comporta.Taken, 1)); err != nil {
				t.Errorf("settling a take from before the reset: %v", err)
			}
			if got := drain(t, store, comporta.Take{Key: key, Rule: rule, Cost: 1}); got != full {
				t.Errorf("after a reset and a late settle %d pass, want %d", got, full)
			}
			if d := takeOne(t, store, comporta.Take{Key: other, Rule: rule}); d.Remaining != full-7 {
				t.Errorf("another client has %d of %d, and took 7", d.Remaining, full)
			}
		})
	}
}

// drain is how often a take passes until it is denied.
func drain(t *testing.T, store comporta.Store, take comporta.Take) (n int64) {
	t.Helper()
	for ; n < 1000; n++ {
		if !takeOne(t, store, take).Allowed {
			break
		}
	}
	return n
}

// reset resets some of the keys, and one that was never asked.
func (w *world) reset() {
	keys := []comporta.Key{{Limit: w.names[0], Identity: "nobody"}}
	for _, key := range w.keys() {
		if seldom(w.t, fmt.Sprint("leave out ", key)) {
			continue
		}
		keys = append(keys, key)
	}
	if err := w.model.Reset(context.Background(), keys); err != nil {
		w.t.Fatalf("the model: %v", err)
	}
	if err := w.store.(comporta.Resetter).Reset(context.Background(), keys); err != nil {
		w.t.Fatalf("reset: %v", err)
	}
}
