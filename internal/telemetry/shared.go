package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// SharedStats are the numbers of a store that instances share, at one moment.
type SharedStats struct {
	// Up: it answers. Since is when it began to, or ceased to; Cause is a word from
	// a fixed list for why it does not.
	Up    bool
	Since time.Time
	Cause string
	// Instances share it, as last known.
	Instances int
	// Since the start: Calls were made, with Takes and Settlements; Remembered
	// denials were answered without one; Replaced values were no states of the store's.
	Calls, Takes, Settlements, Remembered, Replaced int64
	// Since the start: Leases were granted, of Leased units in all, and Served takes
	// without a call; Returned units went back unused, Lost ones could not.
	Leases, Leased, Served, Returned, Lost int64
	// Errors are the calls that failed, by cause: words from a fixed list.
	Errors map[string]int64
}

// sharedCollector asks for the numbers when metrics are asked for.
type sharedCollector struct {
	stats    func() SharedStats
	counters []sharedCounter

	up, instances, failures *prometheus.Desc
}

// A sharedCounter is one of the numbers without labels that only grow.
type sharedCounter struct {
	desc *prometheus.Desc
	of   func(*SharedStats) int64
}

func newSharedCollector(stats func() SharedStats) *sharedCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("comporta_store_"+name, help, labels, nil)
	}
	return &sharedCollector{
		stats: stats,
		counters: []sharedCounter{
			{desc("calls_total", "Calls to the shared store."), func(s *SharedStats) int64 { return s.Calls }},
			{desc("takes_total", "Takes that went with those calls."), func(s *SharedStats) int64 { return s.Takes }},
			{desc("settlements_total", "Settlements that went with those calls."), func(s *SharedStats) int64 { return s.Settlements }},
			{desc("remembered_denials_total", "Denials that were answered from memory, without a call."), func(s *SharedStats) int64 { return s.Remembered }},
			{desc("replaced_values_total", "Values of another type or form that were replaced."), func(s *SharedStats) int64 { return s.Replaced }},
			{desc("leases_total", "Leases that the shared store granted."), func(s *SharedStats) int64 { return s.Leases }},
			{desc("leased_units_total", "Units that those leases held."), func(s *SharedStats) int64 { return s.Leased }},
			{desc("leased_takes_total", "Takes that were served from leases, without a call."), func(s *SharedStats) int64 { return s.Served }},
			{desc("returned_units_total", "Leased units that went back unused."), func(s *SharedStats) int64 { return s.Returned }},
			{desc("lost_units_total", "Leased units that could not go back, and are lost until they would have refilled."), func(s *SharedStats) int64 { return s.Lost }},
		},
		up:        desc("up", "Whether the shared store answers: 1 or 0."),
		instances: desc("instances", "Instances that share the store, as last known."),
		failures:  desc("errors_total", "Calls to the shared store that failed.", "cause"),
	}
}

// Describe is part of prometheus.Collector.
func (c *sharedCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.up
	ch <- c.instances
	ch <- c.failures
	for _, counter := range c.counters {
		ch <- counter.desc
	}
}

// Collect is part of prometheus.Collector.
func (c *sharedCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	up := 0.0
	if s.Up {
		up = 1
	}
	ch <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, up)
	ch <- prometheus.MustNewConstMetric(c.instances, prometheus.GaugeValue, float64(s.Instances))
	for _, counter := range c.counters {
		ch <- prometheus.MustNewConstMetric(counter.desc, prometheus.CounterValue, float64(counter.of(&s)))
	}
	for cause, n := range s.Errors {
		ch <- prometheus.MustNewConstMetric(c.failures, prometheus.CounterValue, float64(n), cause)
	}
}
