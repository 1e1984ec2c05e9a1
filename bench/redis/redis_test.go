package main

import (
	"math"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"time"
)

// TestEveryRow runs each side in each scenario for a moment, with few keys: do all
// still run, and do they allow what the limit allows?
func TestEveryRow(t *testing.T) {
	b := bench{rounds: 1, round: 3 * time.Millisecond, only: regexp.MustCompile(""), fewer: 100}
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, s := range scenarios {
		lines += len(s.lines)
	}
	if len(b.rows) != lines {
		t.Errorf("%d rows of %d lines", len(b.rows), lines)
	}
	for _, r := range b.rows {
		if r.Peer.Name == "" || r.Peer.Of <= 0 || r.Ours.Of <= 0 {
			t.Errorf("%s: %+v beside %+v", r.Scenario, r.Ours, r.Peer)
		}
	}
}

func TestLatencies(t *testing.T) {
	var l latencies
	const n = 10_000
	for i := range n {
		l.add(time.Duration(i+1) * time.Microsecond)
	}
	for _, percent := range []float64{0.01, 50, 99, 99.9, 100} {
		want := percent / 100 * n
		if got := float64(l.percentile(percent)) / 1e3; got < want || got > want*1.04 {
			t.Errorf("%v %% of %d even latencies are within %v µs, want %v", percent, n, got, want)
		}
	}
	var other latencies
	other.add(time.Hour)
	l.merge(&other)
	if got := l.percentile(100); got < time.Hour || got > 62*time.Minute {
		t.Errorf("the longest is %v, want an hour", got)
	}
	if got := new(latencies).percentile(50); got != 0 {
		t.Errorf("the median of none is %v", got)
	}
}

func TestClassesFollowEachOther(t *testing.T) {
	for c := range len(latencies{}) - 1 {
		if least(c) >= least(c+1) || class(uint64(least(c))) != c || class(uint64(least(c+1))-1) != c {
			t.Fatalf("class %d is from %d to %d ns", c, least(c), least(c+1))
		}
	}
}

func TestSummaryIsTheMedianRound(t *testing.T) {
	round := func(decisions int, each time.Duration) *sample {
		s := &sample{decisions: decisions, wall: time.Second, client: time.Duration(decisions) * each, server: time.Duration(decisions) * each / 2}
		s.latencies.add(each)
		return s
	}
	got := summarise("side", []*sample{round(1000, 8*time.Microsecond), round(3000, 2*time.Microsecond), round(2000, 4*time.Microsecond)})
	if got.rate != 2 || got.client != 4 || got.server != 2 || math.Abs(got.p50-4) > 0.2 {
		t.Errorf("%+v", got)
	}
}

func TestEveryNameIsThereOnce(t *testing.T) {
	var names []string
	for _, s := range slices.Concat(peers, others) {
		names = append(names, s.name)
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) || len(names) > databases {
		t.Errorf("the sides are %q", names)
	}
}

// BenchmarkSides is a side alone, under 256 callers, for profiles: what it needs
// beside others is for go run ./redis to say.
func BenchmarkSides(b *testing.B) {
	s, err := startServer(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.stop()
	scenario := scenarios[0]
	for i, side := range slices.Concat(peers, others) {
		b.Run(side.name, func(b *testing.B) {
			l, err := side.open(s.address, i, scenario.allowance())
			if err != nil {
				b.Fatal(err)
			}
			defer l.close()
			b.SetParallelism(max(1, scenario.callers/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := l.take(b.Context(), keyName(rand.IntN(scenario.keys))); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
