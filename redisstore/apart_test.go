package redisstore_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
)

// TestSlotBySlot takes limits of identities in different slots: what the first
// slots spent comes back when a later one denies, and attempts are charged.
func TestSlotBySlot(t *testing.T) {
	cluster := redistest.StartCluster(t)
	store, err := redisstore.New(dial(t, cluster.URL()), redisstore.Options{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	hour := func(n int64, change func(*comporta.Limit)) *comporta.Rule {
		limit := comporta.Limit{Algorithm: comporta.FixedWindow, Limit: n, Window: 1000 * time.Hour}
		if change != nil {
			change(&limit)
		}
		return compile(t, limit)
	}
	attempts := func(l *comporta.Limit) { l.Charge = comporta.Attempts }
	key := func(limit, identity string) comporta.Key { return comporta.Key{Limit: limit, Identity: identity} }
	if redisstore.SlotOf("a") == redisstore.SlotOf("b") || redisstore.SlotOf("b") == redisstore.SlotOf("c") {
		t.Fatal("the identities lie in one slot")
	}

	t.Run("gives back", func(t *testing.T) {
		takes := []comporta.Take{
			{Key: key("wide", "a"), Rule: hour(10, nil), Cost: 1},
			{Key: key("narrow", "b"), Rule: hour(2, nil), Cost: 1},
			{Key: key("tried", "c"), Rule: hour(10, attempts), Cost: 1},
			{Key: key("after", "c"), Rule: hour(10, nil), Cost: 1},
		}
		out := make([]comporta.Taken, len(takes))
		for i := range 5 {
			if err := store.Take(t.Context(), takes, out); err != nil {
				t.Fatal(err)
			}
			if o := comporta.Resolve(takes, out); o.Allowed != (i < 2) || (o.RetryAfter > 0) == o.Allowed {
				t.Errorf("request %d: got %+v", i, o)
			}
			spent := min(int64(i)+1, 2)
			for j, want := range []int64{10 - spent, 2 - spent, 10 - int64(i) - 1, 10 - spent} {
				if out[j].Remaining != want {
					t.Errorf("request %d, %s: %d remain, want %d", i, takes[j].Key.Limit, out[j].Remaining, want)
				}
			}
		}
	})

	t.Run("gives back when a slot fails", func(t *testing.T) {
		store, err := redisstore.New(dial(t, cluster.URL()), redisstore.Options{Timeout: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		takes := []comporta.Take{
			{Key: key("good", "a"), Rule: hour(10, nil), Cost: 1},
			{Key: key("bad", "b"), Rule: hour(10, nil), Cost: 1},
		}
		out := make([]comporta.Taken, len(takes))
		redistest.Until(t, 5*time.Second, func() error { return store.Take(t.Context(), takes, out) })
		spent := out[0].Limit - out[0].Remaining
		slow := cluster.Primary(int(redisstore.SlotOf("b")))
		slow.Pause()
		begun := time.Now()
		err = store.Take(t.Context(), takes, out)
		took := time.Since(begun)
		slow.Resume()
		if err == nil || errors.Is(err, comporta.ErrUnspent) || errors.Is(err, redisstore.ErrDown) || took > 350*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		redistest.Until(t, 5*time.Second, func() error {
			d, err := store.TakeOne(t.Context(), takes[0].Key, takes[0].Rule, 0)
			if err == nil && d.Remaining != 10-spent {
				err = fmt.Errorf("%d remain, want %d", d.Remaining, 10-spent)
			}
			return err
		})
	})

	t.Run("never admits more", func(t *testing.T) {
		const limit = 50
		takes := []comporta.Take{
			{Key: key("first", "a"), Rule: hour(limit, nil), Cost: 1},
			{Key: key("second", "b"), Rule: hour(limit-10, nil), Cost: 1},
		}
		var passed atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				out := make([]comporta.Taken, len(takes))
				for range 20 {
					if err := store.Take(t.Context(), takes, out); err != nil {
						t.Error(err)
						return
					}
					if comporta.Resolve(takes, out).Allowed {
						passed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if got := passed.Load(); got > limit-10 || got == 0 {
			t.Errorf("%d passed, want at most %d", got, limit-10)
		}
		d, err := store.TakeOne(t.Context(), takes[0].Key, takes[0].Rule, 0)
		if err != nil || d.Remaining != limit-passed.Load() {
			t.Errorf("after %d requests %d of %d remain (%v)", passed.Load(), d.Remaining, limit, err)
		}
	})
}
