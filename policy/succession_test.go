package policy

import (
	"net/netip"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
)

// What is still put to the engine before a change is decided by the numbers after
// it: else the key would go back and forth between the two, and each time that it
// comes to smaller ones, what was used over them would be forgiven.
func TestAnEngineThatWasFollowedDecidesByTheNewNumbers(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return at }
	store, err := memstore.New(memstore.Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	made := func(units, plan int64, before *Engine) *Engine {
		limit := comporta.Limit{Limit: units, Window: time.Hour}
		p := &Policy{Limits: []*Limit{{Name: "a", Per: new(identity.Address), Limit: limit}}}
		if plan > 0 {
			p.Plans = map[string]Plan{"pro": {"a": comporta.Limit{Limit: plan, Window: time.Hour}}}
		}
		e, err := NewEngine(p, store, Options{Now: clock, Before: before})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	old := made(10, 20, nil)
	now := made(30, 0, old)
	ask := func(e *Engine) comporta.Decision {
		var v Verdict
		e.Check(t.Context(), &identity.Request{Method: "GET", Path: "/", Peer: netip.MustParseAddr("192.0.2.1")}, &v)
		return v.Applied[0].Decision
	}
	if d := ask(old); d.Limit != 10 || d.Remaining != 9 {
		t.Fatalf("at first: %+v", d)
	}
	now.Follow(old)
	for used := int64(2); used <= 30; used += 2 {
		if d := ask(now); d.Limit != 30 || d.Remaining != 30-used {
			t.Fatalf("%d used: %+v", used, d)
		}
		if d := ask(old); d.Limit != 30 || d.Remaining != max(0, 30-used-1) {
			t.Fatalf("%d used, by the old engine: %+v", used+1, d)
		}
	}
	if d := ask(now); d.Allowed {
		t.Errorf("more than the budget: %+v", d)
	}
	if from := old.clauses[0].parts[0].plans["pro"].rule.Current(); from != now.clauses[0].parts[0].own.rule {
		t.Error("a plan that is gone is not followed by the limit's own numbers")
	}
}
