package storetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/storetest"
)

func five(t *testing.T) comporta.Take {
	t.Helper()
	rule, err := comporta.Limit{Limit: 5, Window: time.Hour}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return comporta.Take{Key: comporta.Key{Limit: "five", Identity: "who"}, Rule: rule, Cost: 1}
}

func TestFaultsAreOfBothKinds(t *testing.T) {
	take := five(t)
	clock := &storetest.Clock{}
	model := &storetest.Model{Now: clock.Now}
	left := func() int64 {
		peek, out := take, [1]comporta.Taken{}
		peek.Cost = 0
		if err := model.Take(t.Context(), []comporta.Take{peek}, out[:]); err != nil {
			t.Fatal(err)
		}
		return out[0].Remaining
	}
	f := &storetest.Faults{Store: model, Script: storetest.Sequence(
		storetest.None, storetest.Lost, storetest.LostReply, // takes
		storetest.Lost, storetest.LostReply, // settles
		storetest.LostReply, storetest.None, // single takes
	)}
	var out [1]comporta.Taken
	for i, want := range []struct {
		fails bool
		left  int64
	}{{false, 4}, {true, 4}, {true, 3}} {
		out[0] = comporta.Taken{}
		err := f.Take(t.Context(), []comporta.Take{take}, out[:])
		if errors.Is(err, storetest.ErrFault) != want.fails || left() != want.left {
			t.Errorf("take %d: %v, and %d are left", i, err, left())
		}
		if told := out[0] != (comporta.Taken{}); told == want.fails {
			t.Errorf("take %d: fails %v, and the decision is %+v", i, want.fails, out[0])
		}
	}
	settlement := comporta.Settlement{Key: take.Key, Rule: take.Rule, Taken: comporta.Receipt{Cost: 1}}
	for i, want := range []int64{3, 4} {
		err := f.Settle(t.Context(), []comporta.Settlement{settlement}, out[:])
		if !errors.Is(err, storetest.ErrFault) || left() != want {
			t.Errorf("settle %d: %v, and %d are left", i, err, left())
		}
	}
	for i, want := range []int64{3, 2} {
		d, err := f.TakeOne(t.Context(), take.Key, take.Rule, take.Cost)
		if (err != nil) != (i == 0) || left() != want || err != nil && d != (comporta.Decision{}) {
			t.Errorf("single take %d: %+v, %v, and %d are left", i, d, err, left())
		}
	}
	if none, lost, reply := f.Calls(storetest.None), f.Calls(storetest.Lost), f.Calls(storetest.LostReply); none != 2 || lost != 2 || reply != 3 {
		t.Errorf("%d calls went through, %d were lost, of %d the reply", none, lost, reply)
	}
	if _, err := f.TakeOne(t.Context(), take.Key, take.Rule, take.Cost); err != nil {
		t.Errorf("after the script's end: %v", err)
	}
}

// TestFaultsPassOnWhatTheStoreRefuses: an error of the store itself is not hidden
// by a lost reply.
func TestFaultsPassOnWhatTheStoreRefuses(t *testing.T) {
	f := &storetest.Faults{Store: &storetest.Model{Now: time.Now}, Script: storetest.Always(storetest.LostReply)}
	take := five(t)
	err := f.Take(context.Background(), []comporta.Take{take, take}, make([]comporta.Taken, 2))
	if !errors.Is(err, comporta.ErrSameKey) {
		t.Errorf("got %v", err)
	}
}

// TestFaultsFailResets: lost, or carried out with its reply lost; and what cannot
// reset says so.
func TestFaultsFailResets(t *testing.T) {
	m := &storetest.Model{Now: time.Now}
	take := five(t)
	f := &storetest.Faults{Store: m, Script: storetest.Sequence(storetest.None, storetest.Lost, storetest.LostReply)}
	if err := f.Take(t.Context(), []comporta.Take{take}, make([]comporta.Taken, 1)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 0} {
		if err := f.Reset(t.Context(), []comporta.Key{take.Key}); !errors.Is(err, storetest.ErrFault) || m.Len() != want {
			t.Errorf("reset %d: %v, and %d keys", i, err, m.Len())
		}
	}
	f.Store = struct{ comporta.Store }{m}
	if err := f.Reset(t.Context(), nil); err == nil {
		t.Error("a store that cannot reset did")
	}
}

func TestRandomFaultsAreTheSameForOneSeed(t *testing.T) {
	a, b := storetest.Random(7, 3), storetest.Random(7, 3)
	var counts [3]int
	for n := range 3000 {
		fault := a(n)
		if other := b(n); other != fault {
			t.Fatalf("call %d: %v and %v", n, fault, other)
		}
		counts[fault]++
	}
	for _, fault := range []storetest.Fault{storetest.Lost, storetest.LostReply} {
		if counts[fault] < 400 || counts[fault] > 600 {
			t.Errorf("of 3,000 calls %d fail in way %d, want about 500", counts[fault], fault)
		}
	}
}

func TestModelCountsClockFaultsAndForgets(t *testing.T) {
	take := five(t)
	clock := &storetest.Clock{}
	clock.Set(1_000_000_000)
	m := &storetest.Model{Now: clock.Now}
	ask := func() (d comporta.Taken) {
		out := [1]comporta.Taken{}
		if err := m.Take(t.Context(), []comporta.Take{take}, out[:]); err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	ask()
	clock.Advance(-comporta.MaxStep)
	if ask(); m.ClockFaults() != 0 {
		t.Errorf("a step back of 10 s counts as %d faults", m.ClockFaults())
	}
	clock.Advance(-time.Microsecond)
	if d := ask(); m.ClockFaults() != 1 || d.Remaining != 2 {
		t.Errorf("%d faults, %+v", m.ClockFaults(), d)
	}
	if m.Len() != 1 {
		t.Errorf("%d keys", m.Len())
	}
	clock.Advance(36 * time.Minute)
	take.Cost = 0
	if d := ask(); m.Len() != 0 || d.FullAfter != 0 {
		t.Errorf("full again: %d keys, %+v", m.Len(), d)
	}
}
