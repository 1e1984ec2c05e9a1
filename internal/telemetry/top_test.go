package telemetry

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
	"pgregory.net/rapid"
)

// A summary's bounds hold for every key, with a place or without, whatever comes.
func TestASummarysBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSummary(rapid.IntRange(1, 8).Draw(t, "places"))
		truth := map[uint64]int64{}
		total := int64(0)
		for range rapid.IntRange(0, 200).Draw(t, "n") {
			key := rapid.Uint64Range(0, 20).Draw(t, "key")
			units := rapid.SampledFrom([]int64{1, 1, 1, 5, 1000}).Draw(t, "units")
			truth[key] += units
			total += units
			s.add(key, fmt.Sprint(key), "", units)
		}
		if s.total != total || len(s.keys) > s.size || len(s.places) != len(s.keys) {
			t.Fatalf("%d of %d counted, in %d places, %d known", s.total, total, len(s.keys), len(s.places))
		}
		for key, n := range truth {
			at, ok := s.places[key]
			switch {
			case !ok && n > s.unseen():
				t.Fatalf("key %d has no place and %d units, over %d", key, n, s.unseen())
			case !ok && n > total/int64(s.size):
				t.Fatalf("key %d has no place and %d units, over a %d-th of %d", key, n, s.size, total)
			case ok && (s.counts[at] < n || s.counts[at]-s.keys[at].before > n):
				t.Fatalf("key %d has %d units: said from %d to %d", key, n, s.counts[at]-s.keys[at].before, s.counts[at])
			}
		}
	})
}

// ask is a verdict at an instant: a request of a client under the first limit,
// and the second.
func ask(e *policy.Engine, at comporta.Instant, client string, cost int64, allowed bool) *policy.Verdict {
	v := verdict(e, client)
	v.Now, v.Allowed = at, allowed
	for i := range v.Applied {
		v.Applied[i].Decision.Allowed = allowed
		if allowed {
			v.Applied[i].Receipt.Cost = cost
		}
	}
	v.Applied[0].Name = "user:" + client
	return v
}

func TestTheTopSlides(t *testing.T) {
	tel, engine := ranked(t)
	minute := comporta.Instant(time.Minute / time.Microsecond)
	for m := range comporta.Instant(30) {
		at := (100 + m) * minute
		for range 10 {
			tel.Observe(ask(engine, at, "steady", 3, true))
		}
		if m < 3 {
			for range 1000 {
				tel.Observe(ask(engine, at, "early", 1, true))
			}
		}
		tel.Observe(ask(engine, at, "refused", 1, false))
	}
	now := 130 * minute
	all, ok := tel.Top(ByUse, "", now)
	if !ok || len(all.Entries) != 1 || all.Entries[0] != (TopEntry{"steady", "user:steady", 100, 100}) || all.Since != now-10*minute || all.Seen != 100 {
		t.Errorf("of the last ten minutes: %+v", all)
	}
	each, _ := tel.Top(ByUse, "each", now)
	if len(each.Entries) != 1 || each.Entries[0].AtLeast != 300 {
		t.Errorf("units of the limit: %+v", each)
	}
	denied, _ := tel.Top(ByDenied, "each", now)
	if len(denied.Entries) != 1 || denied.Entries[0] != (TopEntry{"refused", "user:refused", 10, 10}) {
		t.Errorf("denied: %+v", denied)
	}
	if _, ok := tel.Top(ByUse, "all", now); ok {
		t.Error("a limit per everyone ranks its one client")
	}
	if _, ok := tel.Top(ByUse, "none", now); ok {
		t.Error("a limit that is not there ranks")
	}
	tel.Follow(engine)
	if again, _ := tel.Top(ByUse, "each", now); len(again.Entries) != 1 {
		t.Errorf("after the policy was replaced: %+v", again)
	}
	if later, _ := tel.Top(ByUse, "", now+60*minute); len(later.Entries) > 0 {
		t.Errorf("an hour later: %+v", later)
	}
	// A clock that was far ahead begins anew.
	tel.Observe(ask(engine, 50*minute, "steady", 1, true))
	if back, _ := tel.Top(ByUse, "", 50*minute); len(back.Entries) != 1 || back.Entries[0].AtLeast != 1 {
		t.Errorf("after the clock stepped back: %+v", back)
	}
}

// A request under several limits counts once over all, and what a limit in shadow
// denies is no refusal.
func TestTheTopOverAllCountsRequests(t *testing.T) {
	tel, engine := ranked(t)
	each := engine.Policy().Limits[0]
	v := &policy.Verdict{Now: 1}
	v.Allowed = true
	for range 3 {
		v.Applied = append(v.Applied, policy.Applied{Limit: each, Identity: "who", Lenient: true, Receipt: comporta.Receipt{Cost: 1}})
	}
	tel.Observe(v)
	v.Allowed = false
	v.Applied[1].Lenient, v.Applied[2].Lenient = false, false
	tel.Observe(v)
	use, _ := tel.Top(ByUse, "", 1)
	denied, _ := tel.Top(ByDenied, "", 1)
	shadow, _ := tel.Top(ByDenied, "each", 1)
	if use.Seen != 1 || denied.Seen != 1 || shadow.Seen != 6 {
		t.Errorf("use %+v, denied %+v, of the limit %+v", use, denied, shadow)
	}
}

// Against clients without end the heavy one is found, in bounded memory, and a
// name that a client chose is cut.
func TestTheTopIsBounded(t *testing.T) {
	tel, engine := ranked(t)
	long := strings.Repeat("ü", 10_000)
	for i := range 20_000 {
		tel.Observe(ask(engine, 1, fmt.Sprint("random", i), 1, true))
		if i%20 == 0 {
			v := ask(engine, 1, "heavy", 1, true)
			v.Applied[0].Name = long
			tel.Observe(v)
		}
	}
	top, _ := tel.Top(ByUse, "each", 1)
	first := top.Entries[0]
	if len(top.Entries) != topPlaces || first.Identity != "heavy" || first.AtMost < 1000 || first.AtLeast > 1000 || len(first.Name) > longestName+4 {
		t.Errorf("%d entries, the first %+v", len(top.Entries), first)
	}
}

// Nobody waits: what is asked at once is counted or said to be missed.
func TestTheTopMissesAndSaysSo(t *testing.T) {
	tel, engine := ranked(t)
	var wg sync.WaitGroup
	const each = 5000
	for g := range 8 {
		wg.Go(func() {
			for range each {
				tel.Observe(ask(engine, 1, fmt.Sprint(g), 1, true))
				if g == 0 {
					tel.Top(ByUse, "", 1)
				}
			}
		})
	}
	wg.Wait()
	tel.Observe(ask(engine, 1, "last", 1, true))
	if top, _ := tel.Top(ByUse, "", 1); top.Seen+top.Missed != 8*each+1 {
		t.Errorf("%d seen and %d missed of %d", top.Seen, top.Missed, 8*each+1)
	}
}

const topPlaces = 100

// ranked is telemetry that ranks.
func ranked(t *testing.T) (*Telemetry, *policy.Engine) {
	t.Helper()
	tel, engine, _ := counting(t)
	if _, ok := tel.Top(ByUse, "", 1); ok {
		t.Error("telemetry ranks unasked")
	}
	return New(Options{Engine: engine, Top: topPlaces}), engine
}

func BenchmarkRanking(b *testing.B) {
	seed := maphash.MakeSeed()
	for _, clients := range []int{10, 100_000} {
		b.Run(fmt.Sprint(clients, " clients"), func(b *testing.B) {
			w := &window{places: topPlaces}
			names := make([]string, clients)
			for i := range names {
				names[i] = fmt.Sprint("address:", rand.Uint64())
			}
			a := &policy.Applied{}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				a.Identity = names[i%clients]
				w.add(1, maphash.String(seed, a.Identity), a, 1)
			}
		})
	}
}
