package sim

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/google/go-cmp/cmp"
)

// wave is a hot client of a fleet: half its limit, then six times that for six
// seconds, then half again. It comes back to it again and again.
func wave(instances int, lease *comporta.Lease) Fleet {
	limit, err := comporta.ParseLimit("100000/10s")
	if err != nil {
		panic(err)
	}
	limit.Lease = lease
	return Fleet{
		Limit: limit, Instances: instances, Seed: 1,
		Load: []Phase{{5 * time.Second, 5_000}, {6 * time.Second, 30_000}, {4 * time.Second, 5_000}},
	}
}

// even is a hot client that stays at four fifths of its limit.
func even(instances int, lease *comporta.Lease) Fleet {
	f := wave(instances, lease)
	f.Load = []Phase{{15 * time.Second, 8_000}}
	return f
}

func with(f Fleet, change func(*Fleet)) Fleet {
	change(&f)
	return f
}

// The page's tables are what the simulation says.
func TestScalingPageIsWhatFleetsDo(t *testing.T) {
	leased := &comporta.Lease{}
	fault := func(f Fault) func(*Fleet) { return func(fleet *Fleet) { fleet.Faults = []Fault{f} } }
	away := func(onError OnError) func(*Fleet) {
		return func(fleet *Fleet) {
			fleet.OnError, fleet.Faults = onError, []Fault{{At: 9 * time.Second, Unreachable: 2 * time.Second}}
		}
	}
	table(t, "calls", "calls for each request", "4/5 of the limit", []fleetRow{
		{"1 instance, no leases", even(1, nil)},
		{"1 instance, leases", even(1, leased)},
		{"10 instances, no leases", even(10, nil)},
		{"10 instances, leases", even(10, leased)},
		{"100 instances, no leases", even(100, nil)},
		{"100 instances, leases", even(100, leased)},
		{"1,000 instances, no leases", even(1_000, nil)},
		{"1,000 instances, leases", even(1_000, leased)},
		{"1,000, most traffic to few", with(even(1_000, leased), func(f *Fleet) { f.Uneven = true })},
		{"1,000, leases of 5 s", even(1_000, &comporta.Lease{TTL: 5 * time.Second})},
		{"1,000, a client of 10,000 (Zipf)", with(even(1_000, leased), func(f *Fleet) { f.Keys = 10_000 })},
	})
	table(t, "failures", "1,000 instances with leases", "a wave over the limit", []fleetRow{
		{"no leases", wave(1_000, nil)},
		{"nothing fails", wave(1_000, leased)},
		{"wall clocks wrong by a day, monotonic ones by 500 ppm", with(wave(1_000, leased), func(f *Fleet) { f.Skew, f.Drift = 24*time.Hour, 500 })},
		{"monotonic clocks wrong by up to 5 %", with(wave(1_000, leased), func(f *Fleet) { f.Drift = 50_000 })},
		{"1 % of messages late by up to 100 ms", with(wave(1_000, leased), func(f *Fleet) { f.Late = 0.01 })},
		{"100 instances die at 6 s", with(wave(1_000, leased), fault(Fault{At: 6 * time.Second, Die: 100}))},
		{"store away from 9 s to 11 s: local", with(wave(1_000, leased), away(Local))},
		{"the same: deny", with(wave(1_000, leased), away(Deny))},
		{"the same: allow", with(wave(1_000, leased), away(Allow))},
		{"failover at 8 s forgets 100 ms", with(wave(1_000, leased), fault(Fault{At: 8 * time.Second, Forget: 100 * time.Millisecond}))},
		{"failover at 8 s forgets 1 s", with(wave(1_000, leased), fault(Fault{At: 8 * time.Second, Forget: time.Second}))},
	})
}

type fleetRow struct {
	name string
	Fleet
}

// table writes the rows between the page's marks, with -update; else it compares.
func table(t *testing.T, mark, title, load string, rows []fleetRow) {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "| %s (%s) | admitted, of what one limiter would | refused early | over | calls a request | lay in leases | lost or forgotten |\n|---|--:|--:|--:|--:|--:|--:|\n", title, load)
	for _, row := range rows {
		r := ride(t, row.Fleet)
		fmt.Fprintf(&out, "| %s | %.1f %% | %d of %d | %d | %.3f | %d | %d |\n", row.name,
			100*float64(r.Admitted)/float64(r.Ideal), r.Early, r.Requests, r.Over, r.CallsPerRequest(), r.Lying, r.Lost+r.Forgotten)
	}
	const page = "../../docs/scaling.md"
	was, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- begin "+mark+" -->\n", "<!-- end "+mark+" -->"
	before, rest, found := strings.Cut(string(was), begin)
	old, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table %q", page, mark)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+out.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(old, out.String()); diff != "" {
		t.Errorf("%s: the table %q is not what fleets do; run with -update (-was +is):\n%s", page, mark, diff)
	}
}
