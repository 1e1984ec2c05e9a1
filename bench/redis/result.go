package main

import (
	"time"

	"github.com/comporta/comporta/bench/internal/report"
)

// A result is what one side needs in a scenario: medians of the rounds.
type result struct {
	name           string
	rate           float64 // thousands of decisions a second
	server, client float64 // µs of processor time a decision
	p50, p99, p999 float64 // µs
}

func summarise(name string, samples []*sample) result {
	median := func(of func(*sample) float64) float64 {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = of(s)
		}
		return report.Median(values)
	}
	percentile := func(percent float64) float64 {
		return median(func(s *sample) float64 { return micros(s.latencies.percentile(percent)) })
	}
	return result{
		name:   name,
		rate:   median(func(s *sample) float64 { return float64(s.decisions) / s.wall.Seconds() / 1e3 }),
		server: median(func(s *sample) float64 { return micros(s.server) / float64(s.decisions) }),
		client: median(func(s *sample) float64 { return micros(s.client) / float64(s.decisions) }),
		p50:    percentile(50), p99: percentile(99), p999: percentile(99.9),
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// A quantity is one of the numbers of a result.
type quantity struct {
	name, unit string
	more       bool // is better
	of         func(result) float64
}

var (
	rate      = quantity{"", "1,000 decisions/s", true, func(r result) float64 { return r.rate }}
	serverCPU = quantity{", Redis's CPU", "µs/decision", false, func(r result) float64 { return r.server }}
	clientCPU = quantity{", client's CPU", "µs/decision", false, func(r result) float64 { return r.client }}
	p50       = quantity{", p50", "µs", false, func(r result) float64 { return r.p50 }}
	p999      = quantity{", p99.9", "µs", false, func(r result) float64 { return r.p999 }}
)

func (q quantity) best(values []report.Value) report.Value {
	if q.more {
		return report.Highest(values)
	}
	return report.Best(values)
}
