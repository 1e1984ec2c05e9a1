package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/storetest"
	"pgregory.net/rapid"
)

var hot = comporta.Key{Limit: "requests", Identity: "hot"}

// leased is a rule with a lease.
func leased(t *testing.T, l comporta.Limit, lease comporta.Lease) *comporta.Rule {
	t.Helper()
	l.Name, l.Lease = "requests", &lease
	rule, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// hourly is a fixed window so long that nothing comes back by itself.
func hourly(limit int64) comporta.Limit {
	return comporta.Limit{Algorithm: comporta.FixedWindow, Limit: limit, Window: 400 * 24 * time.Hour}
}

// openCuttable is a store whose client may be cut off.
func openCuttable(t *testing.T, server *redistest.Server, o redisstore.Options) (*redisstore.Store, *cuttable) {
	t.Helper()
	client := &cuttable{raw: raw{server}}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	s, err := redisstore.New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, client
}

func takeHot(t *testing.T, s *redisstore.Store, rule *comporta.Rule, cost int64) comporta.Decision {
	t.Helper()
	d, err := s.TakeOne(t.Context(), hot, rule, cost)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// remaining is what the store says remains, for one that holds nothing.
func remaining(t *testing.T, server *redistest.Server, l comporta.Limit) int64 {
	t.Helper()
	rule, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return takeHot(t, openOn(t, server, redisstore.Options{}), rule, 0).Remaining
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestLeaseServesWithoutAsking(t *testing.T) {
	s := openOn(t, redistest.Start(t), redisstore.Options{})
	rule := leased(t, hourly(10_000), comporta.Lease{Size: 100, TTL: time.Minute})
	for i := range int64(1000) {
		if d := takeHot(t, s, rule, 1); !d.Allowed || d.Remaining != 9_999-i {
			s.Quiet() // units that are on their way here remain too
			if again := takeHot(t, s, rule, 0); !d.Allowed || again.Remaining != 9_999-i {
				t.Fatalf("take %d: %+v, then %+v", i, d, again)
			}
		}
	}
	if st := s.Stats(); st.Leases.Served < 900 {
		t.Errorf("only %d of 1000 were served without asking: %+v", st.Leases.Served, st)
	}
}

func TestLeaseFitsTheRate(t *testing.T) {
	clock := &storetest.Clock{}
	s := openOn(t, redistest.Start(t), redisstore.Options{Now: clock.Now})
	rule := leased(t, comporta.Limit{Limit: 1_000_000, Window: time.Hour}, comporta.Lease{})
	steps := []struct {
		what    string
		every   time.Duration
		n       int
		at, max int64 // of what is held in the end
	}{
		{"seldom asked is not leased", 2 * time.Second, 20, 0, 0},
		{"100 a second holds half a second's", 10 * time.Millisecond, 300, 15, 80},
		{"1000 a second holds as much more", time.Millisecond, 3000, 150, 800},
		{"and less again", 10 * time.Millisecond, 300, 15, 80},
	}
	for _, step := range steps {
		for range step.n {
			clock.Advance(step.every)
			takeHot(t, s, rule, 1)
			s.Quiet()
		}
		if held := s.Held(hot); held < step.at || held > step.max {
			t.Errorf("%s: %d units are held", step.what, held)
		}
	}
}

// TestLeaseGrantsItsPart compares what the script grants with what the Go step
// says that remains, over the whole range of limits.
func TestLeaseGrantsItsPart(t *testing.T) {
	server := redistest.Start(t)
	clock := &storetest.Clock{}
	s := openOn(t, server, redisstore.Options{Now: clock.Now})
	var runs int
	rapid.Check(t, func(t *rapid.T) {
		limit := storetest.Limits().Draw(t, "limit")
		limit.Name = "requests"
		limit.Lease = &comporta.Lease{Size: comporta.MaxUnits, TTL: 10 * time.Millisecond, Share: rapid.IntRange(1, 50).Draw(t, "share")}
		rule, err := limit.Compile()
		if err != nil || !rule.Counting() {
			t.Skip("no lease there")
		}
		runs++
		key := comporta.Key{Limit: "requests", Identity: fmt.Sprint("client ", runs)}
		clock.Set(comporta.InstantOf(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)))
		full := rule.Full()
		for _, cost := range []int64{rapid.Int64Range(1, full).Draw(t, "first"), 1} {
			clock.Advance(rapid.SampledFrom([]time.Duration{2 * time.Millisecond, limit.Window/3 + 2*time.Millisecond}).Draw(t, "wait"))
			held := s.Held(key)
			d, err := s.TakeOne(context.Background(), key, rule, cost)
			if err != nil {
				t.Fatal(err)
			}
			s.Quiet()
			if held > 0 || !d.Allowed {
				return // this was not asked, or left nothing
			}
			want := min(limit.Lease.Most(full), d.Remaining*int64(limit.Lease.Share)/100)
			if got := s.Held(key); got != want {
				t.Fatalf("%d units of %d of %v %v are leased, want %d", got, d.Remaining, rule.Algorithm(), limit, want)
			}
		}
	})
	if runs < 10 {
		t.Errorf("only %d limits could be leased", runs)
	}
}

func TestLeaseGoesBackWhenItEnds(t *testing.T) {
	server := redistest.Start(t)
	s := openOn(t, server, redisstore.Options{})
	rule := leased(t, hourly(1000), comporta.Lease{Size: 100, TTL: 50 * time.Millisecond})
	takeHot(t, s, rule, 1)
	s.Quiet()
	eventually(t, "the unused units go back", func() bool { return remaining(t, server, hourly(1000)) == 999 })
	s.Quiet()
	if st := s.Stats().Leases; st.Granted == 0 || st.Returned != st.Leased {
		t.Errorf("got %+v", st)
	}
	eventually(t, "the key is forgotten", func() bool { return s.Leases() == 0 })
}

func TestLeaseGoesBackAtClose(t *testing.T) {
	server := redistest.Start(t)
	s := openOn(t, server, redisstore.Options{})
	rule := leased(t, hourly(1000), comporta.Lease{Size: 100, TTL: time.Minute})
	takeHot(t, s, rule, 1)
	s.Close()
	if got := remaining(t, server, hourly(1000)); got != 999 {
		t.Errorf("%d remain after Close, want 999", got)
	}
	takeHot(t, s, rule, 1)
	if held := s.Held(hot); held != 0 {
		t.Errorf("a closed store holds %d units", held)
	}
}

// A killed instance loses what it held, no more, and its part of the share is
// free for others once its leases have ended.
func TestLeaseOfTheDead(t *testing.T) {
	server := redistest.Start(t)
	rule := leased(t, hourly(1000), comporta.Lease{Size: 100, TTL: 500 * time.Millisecond})
	dead, client := openCuttable(t, server, redisstore.Options{})
	takeHot(t, dead, rule, 1)
	dead.Quiet()
	lost := dead.Held(hot)
	client.cut.Store(true)
	if lost == 0 || lost > 100 {
		t.Fatalf("it held %d units", lost)
	}

	s := openOn(t, server, redisstore.Options{})
	eventually(t, "others get the whole share", func() bool {
		takeHot(t, s, rule, 1)
		return s.Held(hot) > 50
	})
	used := 1000 - 1 - lost - remaining(t, server, hourly(1000)) - s.Held(hot)
	for used < 999-lost {
		if takeHot(t, s, rule, 1).Allowed {
			used++
		}
	}
	if d := takeHot(t, s, rule, 1); d.Allowed {
		t.Errorf("more than 1000 - 1 - %d went on: %+v", lost, d)
	}
}

// Near exhaustion no client is refused for longer than leases last while units
// lie idle elsewhere: in the end all units are used.
func TestLeaseLeavesNothingIdle(t *testing.T) {
	server := redistest.Start(t)
	rule := leased(t, hourly(200), comporta.Lease{Size: 20, TTL: 20 * time.Millisecond})
	idle, busy := openOn(t, server, redisstore.Options{}), openOn(t, server, redisstore.Options{})
	takeHot(t, idle, rule, 1)
	used := 1
	eventually(t, "the busy instance uses all", func() bool {
		if takeHot(t, busy, rule, 1).Allowed {
			used++
		}
		return used == 200
	})
	if d := takeHot(t, busy, rule, 1); d.Allowed {
		t.Errorf("one too many: %+v", d)
	}
}

// While a refill is on its way takes go on without it.
func TestLeaseIsRefilledAheadOfNeed(t *testing.T) {
	server := redistest.Start(t)
	s, client := openCuttable(t, server, redisstore.Options{})
	rule := leased(t, hourly(10_000), comporta.Lease{Size: 100, TTL: time.Minute})
	takeHot(t, s, rule, 1)
	s.Quiet()
	gate := make(chan struct{})
	client.gate.Store(&gate)
	before := s.Stats().Calls
	for i := range 100 {
		if i == 60 {
			eventually(t, "a refill is on its way with units left", func() bool { return s.Stats().Calls > before })
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := s.TakeOne(ctx, hot, rule, 1); err != nil {
			t.Fatalf("a take waited for a refill: %v", err)
		}
		cancel()
	}
	if held := s.Held(hot); held != 0 {
		t.Fatalf("%d units are left", held)
	}
	client.gate.Store(nil)
	close(gate)
	s.Quiet()
	if held := s.Held(hot); held != 100 {
		t.Errorf("the refill brought %d units", held)
	}
}

// What is at hand goes on while the store is away.
func TestLeaseOutlastsTheBreaker(t *testing.T) {
	server := redistest.Start(t)
	s, client := openCuttable(t, server, redisstore.Options{Failures: 1, Probe: time.Hour})
	rule := leased(t, hourly(10_000), comporta.Lease{Size: 100, TTL: time.Minute})
	takeHot(t, s, rule, 1)
	s.Quiet()
	client.cut.Store(true)
	other := comporta.Key{Limit: "requests", Identity: "other"}
	if _, err := s.TakeOne(t.Context(), other, rule, 1); err == nil {
		t.Fatal("the store is away and answers")
	}
	for range 100 {
		takeHot(t, s, rule, 1)
	}
	if _, err := s.TakeOne(t.Context(), hot, rule, 1); !errors.Is(err, redisstore.ErrDown) {
		t.Errorf("got %v, want ErrDown", err)
	}
}

// Of several limits the leased ones are put back when another denies or fails.
func TestLeaseIsPutBack(t *testing.T) {
	server := redistest.Start(t)
	s, client := openCuttable(t, server, redisstore.Options{})
	rule := leased(t, hourly(10_000), comporta.Lease{Size: 100, TTL: time.Minute})
	one, err := comporta.Limit{Name: "one", Algorithm: comporta.FixedWindow, Limit: 1, Window: time.Hour}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	takeHot(t, s, rule, 1)
	s.Quiet()
	held := s.Held(hot)
	takes := []comporta.Take{{Key: hot, Rule: rule, Cost: 2}, {Key: comporta.Key{Limit: "one", Identity: "hot"}, Rule: one, Cost: 1}}
	out := make([]comporta.Taken, 2)
	for i, allowed := range []bool{true, false, false} {
		if err := s.Take(t.Context(), takes, out); err != nil {
			t.Fatal(err)
		}
		if !out[0].Allowed || out[1].Allowed != allowed || allowed != (out[0].Receipt.Cost == 2) || out[0].Remaining != 9_997 {
			t.Errorf("request %d: %+v", i, out)
		}
	}
	client.cut.Store(true)
	takes[1].Key.Identity = "other"
	if err := s.Take(t.Context(), takes, out); err == nil {
		t.Error("the store is away and answers")
	}
	if got := s.Held(hot); got != held-2 {
		t.Errorf("%d units are held, want %d", got, held-2)
	}
}

func TestLeaseOfAnotherRule(t *testing.T) {
	server := redistest.Start(t)
	s := openOn(t, server, redisstore.Options{})
	takeHot(t, s, leased(t, hourly(1000), comporta.Lease{Size: 100, TTL: time.Minute}), 1)
	s.Quiet()
	held := s.Held(hot)
	takeHot(t, s, leased(t, hourly(1000), comporta.Lease{Size: 100, TTL: time.Minute}), 1)
	if got := s.Held(hot); got != held-1 {
		t.Errorf("the same numbers anew: %d units are held, want %d", got, held-1)
	}
	takeHot(t, s, leased(t, hourly(500), comporta.Lease{Size: 10, TTL: time.Minute}), 1)
	s.Quiet()
	if got := remaining(t, server, hourly(500)) + s.Held(hot); got != 497 {
		t.Errorf("other numbers: %d remain, want 497", got)
	}
	if st := s.Stats().Leases; st.Returned != held-1 {
		t.Errorf("other numbers: %d units went back, want %d", st.Returned, held-1)
	}
}

// What is not the script's in the ledger's key is replaced, and keys of limits
// never look like it.
func TestLeaseLedger(t *testing.T) {
	server := redistest.Start(t)
	s := openOn(t, server, redisstore.Options{})
	rule := leased(t, hourly(1000), comporta.Lease{Size: 100, TTL: time.Minute})
	if _, err := server.Do("HSET", s.LedgerOf(hot), "field", "value"); err != nil {
		t.Fatal(err)
	}
	takeHot(t, s, rule, 1)
	s.Quiet()
	if held := s.Held(hot); held != 99 { // a tenth of the 999 that remain
		t.Errorf("%d units are held", held)
	}
	left, err := server.Do("PTTL", s.LedgerOf(hot))
	if ms, _ := left.(int64); err != nil || ms <= 58_000 || ms > 61_000 {
		t.Errorf("the ledger expires in %v ms (%v)", left, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.StringOf(rapid.SampledFrom([]rune("0123456789:{}lease")))
		a := comporta.Key{Limit: draw.Draw(t, "limit"), Identity: draw.Draw(t, "identity")}
		b := comporta.Key{Limit: draw.Draw(t, "limit"), Identity: draw.Draw(t, "identity")}
		if s.LedgerOf(a) == s.KeyOf(b) || a != b && s.LedgerOf(a) == s.LedgerOf(b) {
			t.Fatalf("%+v and %+v share %q", a, b, s.LedgerOf(a))
		}
	})
}

// A wish that reaches the store after a later one brings nothing: it tells what was
// held long ago.
func TestLeaseOvertaken(t *testing.T) {
	server := redistest.Start(t)
	s, client := openCuttable(t, server, redisstore.Options{Timeout: time.Second, Failures: 1000, Heartbeat: time.Hour})
	rule := leased(t, hourly(10_000), comporta.Lease{Size: 100, TTL: time.Minute / 4})
	takeHot(t, s, rule, 1)
	s.Quiet()
	gate := make(chan struct{})
	client.gate.Store(&gate)
	for range 50 {
		takeHot(t, s, rule, 1)
	}
	s.Quiet() // in vain: that wish is late
	client.gate.Store(nil)
	eventually(t, "a later wish is granted", func() bool {
		takeHot(t, s, rule, 1)
		s.Quiet()
		return s.Stats().Leases.Granted == 2
	})
	before, held := remaining(t, server, hourly(10_000)), s.Held(hot)
	ledger, _ := server.Do("GET", s.LedgerOf(hot))
	close(gate)
	client.late.Wait()
	if after := remaining(t, server, hourly(10_000)); after != before {
		t.Errorf("%d units remain, then %d: a wish was granted too late, beside %d held", before, after, held)
	}
	if now, _ := server.Do("GET", s.LedgerOf(hot)); now != ledger {
		t.Error("the ledger tells what was held long ago")
	}
}

// Whoever asks evenly never waits for a lease that has grown old.
func TestLeaseIsRenewed(t *testing.T) {
	clock := &storetest.Clock{}
	s := openOn(t, redistest.Start(t), redisstore.Options{Now: clock.Now})
	rule := leased(t, hourly(10_000), comporta.Lease{Size: 100, TTL: time.Second})
	takeHot(t, s, rule, 1)
	for range 100 {
		s.Quiet()
		clock.Advance(50 * time.Millisecond)
		takeHot(t, s, rule, 1)
	}
	if st := s.Stats().Leases; st.Served != 100 || st.Granted > 10 {
		t.Errorf("of 100 even takes %d needed no call, with %d leases", st.Served, st.Granted)
	}
}

// A store has leases of a bounded number of keys. Others are asked each time.
func TestLeasesAreBounded(t *testing.T) {
	server := redistest.Start(t)
	s := openOn(t, server, redisstore.Options{})
	redisstore.FillLeases(s)
	rule := leased(t, hourly(10_000), comporta.Lease{Size: 100, TTL: time.Minute})
	for range 3 {
		takeHot(t, s, rule, 1)
	}
	s.Quiet()
	if st := s.Stats(); st.Leases.Granted != 0 || st.Takes != 3 {
		t.Errorf("got %+v", st)
	}
}
