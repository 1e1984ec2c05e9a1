package egress

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// A shaky store answers while it is well.
type shaky struct {
	comporta.Store
	ill bool
}

func (s *shaky) Take(ctx context.Context, takes []comporta.Take, taken []comporta.Taken) error {
	if s.ill {
		return errors.New("away")
	}
	return s.Store.Take(ctx, takes, taken)
}

// The log says when a store begins to fail and when it answers again, each once; and
// who hangs up while it is asked is no failure of it.
func TestTheLogTellsOfAStoreOnce(t *testing.T) {
	rule, err := mustLimit(t, "100/min").Compile()
	if err != nil {
		t.Fatal(err)
	}
	var stores [2]comporta.Store
	for i := range stores {
		m, err := memstore.New(memstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		stores[i] = m
	}
	var logs strings.Builder
	store := &shaky{Store: stores[0]}
	outbound, err := NewLimit(rule, store, stores[1], policy.Local, slog.New(slog.NewTextHandler(&logs, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for round, c := range []struct {
		ill             bool
		fails, recovers int
	}{{false, 0, 0}, {true, 1, 0}, {true, 1, 0}, {false, 1, 1}, {false, 1, 1}, {true, 2, 1}} {
		store.ill = c.ill
		if d, err := outbound.Take(t.Context(), "x", 1); err != nil || !d.Allowed {
			t.Error(round, d, err)
		}
		if strings.Count(logs.String(), "the store fails") != c.fails || strings.Count(logs.String(), "the store answers again") != c.recovers {
			t.Errorf("round %d: %s", round, &logs)
		}
	}
	logs.Reset()
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	store.ill = true
	outbound.(*limit).failing.Store(false)
	if _, err := outbound.Take(gone, "x", 1); err == nil || logs.Len() > 0 {
		t.Error(err, &logs)
	}
}
