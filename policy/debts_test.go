package policy_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
	"github.com/comporta/comporta/storetest"
)

// quota is a limit over a calendar period, by the peer's address.
func quota(t testing.TB, name, numbers string, set ...func(*policy.Limit)) *policy.Limit {
	t.Helper()
	n, err := comporta.ParseQuota(numbers)
	if err != nil {
		t.Fatal(err)
	}
	l := &policy.Limit{Name: name, Per: socket, Limit: n}
	for _, s := range set {
		s(l)
	}
	return l
}

const other = "198.51.100.1"

func TestAQuotaPaysForWhatItSpentWithoutTheStore(t *testing.T) {
	f := join(t, 2, limits(quota(t, "day", "100/day", cost(pattern(t, "/b/"), 5)), limit(t, "hour", "100/h as fixed_window")))
	f.passes(10, "GET", "/", peer)
	f.store.be(true)
	f.passes(3, "GET", "/b/", peer)
	f.passes(7, "GET", "/", other)
	if err := f.Repay(t.Context()); !errors.Is(err, storetest.ErrFault) {
		t.Fatalf("repaid to a store that is down: %v", err)
	}
	f.store.be(false)
	for range 2 { // each unit once
		if err := f.Repay(t.Context()); err != nil {
			t.Fatal(err)
		}
		v, w := f.peek(t, "day", peer), f.peek(t, "day", other)
		if diff := cmp.Diff([]int64{75, 93}, []int64{v, w}); diff != "" {
			t.Error(diff)
		}
	}
	if n := f.peek(t, "hour", other); n != 100 {
		t.Errorf("a limit that is no quota was charged: %d left", n)
	}
}

// peek asks the shared store under a limit's own numbers.
func (f *fleet) peek(t *testing.T, name, peer string) int64 {
	t.Helper()
	for _, l := range f.Limits() {
		if l.Name != name {
			continue
		}
		rule, err := l.Limit.Compile()
		if err != nil {
			t.Fatal(err)
		}
		out := make([]comporta.Taken, 1)
		key := comporta.Key{Limit: name, Identity: "address:" + netip.MustParseAddr(peer).String()}
		if err := f.store.Store.Take(t.Context(), []comporta.Take{{Key: key, Rule: rule}}, out); err != nil {
			t.Fatal(err)
		}
		return out[0].Remaining
	}
	t.Fatalf("no limit %s", name)
	return 0
}

// What was denied, by this limit or another, is not charged; what a shadow quota
// counted is.
func TestOnlyWhatPassedIsCharged(t *testing.T) {
	f := join(t, 1, limits(
		quota(t, "day", "100/day"), quota(t, "hammered", "5/day", attempts), quota(t, "shadow", "2/day", shadow)))
	f.store.be(true)
	if n := f.passes(9, "GET", "/", peer); n != 5 {
		t.Fatalf("%d pass", n)
	}
	f.store.be(false)
	if err := f.Repay(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := []int64{f.peek(t, "day", peer), f.peek(t, "hammered", peer), f.peek(t, "shadow", peer)}
	if diff := cmp.Diff([]int64{95, 0, 0}, got); diff != "" {
		t.Error(diff)
	}
}

// What was spent in a window that is over, or so nearly that it may be over by
// the store's clock, is not charged to the next.
func TestAWindowThatIsOverIsNotCharged(t *testing.T) {
	for _, c := range []struct {
		before time.Duration // the end of the day
		want   int64
	}{{11 * time.Second, 60}, {10 * time.Second, 100}, {-time.Second, 100}} {
		f := join(t, 1, limits(quota(t, "day", "100/day")))
		f.store.be(true)
		f.passes(40, "GET", "/", peer)
		f.store.be(false)
		f.now = epoch.Add(24*time.Hour - c.before)
		if err := f.Repay(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := f.peek(t, "day", peer); got != c.want {
			t.Errorf("%v before the end: %d left, not %d", c.before, got, c.want)
		}
	}
	f := join(t, 1, limits(quota(t, "day", "100/day")))
	f.store.be(true)
	f.passes(40, "GET", "/", peer)
	f.now = epoch.Add(24 * time.Hour) // one outage over two days
	f.passes(3, "GET", "/", peer)
	f.store.be(false)
	if err := f.Repay(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.peek(t, "day", peer); got != 97 {
		t.Errorf("%d left of the second day, not 97", got)
	}
}

// A settle that fails may have been applied: it is done again only where the store
// is sure that it was not.
func TestNoUnitIsChargedTwice(t *testing.T) {
	for fault, want := range map[storetest.Fault]int64{storetest.LostReply: 60, storetest.Lost: 100, storetest.Unspent: 60} {
		f := join(t, 1, limits(quota(t, "day", "100/day")))
		f.store.be(true)
		f.passes(40, "GET", "/", peer)
		first := f.store.Calls(storetest.Lost)
		f.store.Script = func(n int) storetest.Fault {
			if n == first+1 { // after the call that asks whether it answers
				return fault
			}
			return storetest.None
		}
		if err := f.Repay(t.Context()); !errors.Is(err, storetest.ErrFault) {
			t.Errorf("%v", err)
		}
		if err := f.Repay(t.Context()); err != nil {
			t.Error(err)
		}
		if got := f.peek(t, "day", peer); got != want {
			t.Errorf("fault %d: %d left, not %d", fault, got, want)
		}
	}
}

// The first verdict of a store that answers again has all repaid, behind it.
func TestTheFirstVerdictRepays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := join(t, 1, limits(quota(t, "day", "100/day")))
		f.store.be(true)
		f.passes(40, "GET", "/", peer)
		f.passes(20, "GET", "/", other)
		f.store.be(false)
		f.check(request("GET", "/", "192.0.2.9"))
		synctest.Wait()
		if a, b := f.peek(t, "day", peer), f.peek(t, "day", other); a != 60 || b != 80 {
			t.Errorf("%d and %d left", a, b)
		}
		calls := f.store.Calls(storetest.None)
		f.check(request("GET", "/", peer))
		synctest.Wait()
		if n := f.store.Calls(storetest.None) - calls; n != 1 {
			t.Errorf("%d calls for a request with nothing owed", n)
		}
	})
}

// Whatever the store does, once it answers for good all that passed is charged,
// each unit once.
func TestAllThatPassedIsChargedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(50) {
			r := rand.New(rand.NewPCG(seed, 0))
			f := join(t, 1+r.IntN(3), limits(quota(t, "day", "1000/day", cost(pattern(t, "/b/"), 7))))
			spent := int64(0)
			for range 100 {
				f.store.be(r.IntN(3) > 0)
				f.now = f.now.Add(time.Duration(r.IntN(100)) * time.Second)
				path, units := "/", int64(1)
				if r.IntN(3) == 0 {
					path, units = "/b/", 7
				}
				if f.check(request("GET", path, peer)).Allowed {
					spent += units
				}
				synctest.Wait() // what repays in the background
				if r.IntN(5) == 0 {
					_ = f.Repay(t.Context())
				}
			}
			f.store.be(false)
			if err := f.Repay(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := 1000 - f.peek(t, "day", peer); got != spent {
				t.Fatalf("seed %d: %d are charged, %d passed", seed, got, spent)
			}
		}
	})
}

// A store that hangs holds nobody up: neither a request nor the end of a program.
func TestRepayingAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limits(quota(t, "day", "100/day"))
		store := &hanging{}
		e, err := policy.NewEngine(&p, store, policy.Options{Local: memory(t, time.Now)})
		if err != nil {
			t.Fatal(err)
		}
		var v policy.Verdict
		e.Check(t.Context(), request("GET", "/", peer), &v)
		if v.Fallen != policy.Local {
			t.Fatal(fell(&v))
		}
		store.hangs = true
		begun := time.Now()
		if err := e.Repay(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// hanging is a store that is lost, or, worse, hangs.
type hanging struct {
	lost
	hangs bool
}

func (h *hanging) Take(ctx context.Context, takes []comporta.Take, out []comporta.Taken) error {
	if h.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return h.lost.Take(ctx, takes, out)
}

// Endless clients in an outage take a bounded memory.
func TestDebtsAreBounded(t *testing.T) {
	if raced {
		t.Skip("nothing in it happens at once, and it takes long under the race detector")
	}
	const most, more = 65_536, 100
	f := join(t, 1, limits(quota(t, "day", "10/day")))
	f.store.be(true)
	address := func(i int) string { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String() }
	for i := range most + more {
		f.passes(1, "GET", "/", address(i))
	}
	f.passes(1, "GET", "/", address(0)) // one that is known still adds up
	f.store.be(false)
	before := f.store.Calls(storetest.None)
	if err := f.Repay(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := f.store.Calls(storetest.None) - before; n != 2*most {
		t.Errorf("%d calls", n)
	}
	if n := f.peek(t, "day", address(0)); n != 8 {
		t.Errorf("%d left", n)
	}
}

// Who is made new owes nothing either.
func TestAResetForgetsWhatIsOwed(t *testing.T) {
	f := join(t, 1, limits(quota(t, "day", "100/day")))
	f.store.be(true)
	f.passes(40, "GET", "/", peer)
	f.store.be(false)
	who, _ := socket.For(peer)
	if err := f.Reset(t.Context(), policy.Listed{Source: socket, Who: who}); err != nil {
		t.Fatal(err)
	}
	if err := f.Repay(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.peek(t, "day", peer); got != 100 {
		t.Errorf("%d left of a new day", got)
	}
}
