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
	// Errors are the calls that failed, by cause: words from a fixed list.
	Errors map[string]int64
}

// sharedCollector asks for the numbers when metrics are asked for.
type sharedCollector struct {
	stats                          func() SharedStats
	up, instances                  *prometheus.Desc
	calls, takes, settlements      *prometheus.Desc
	remembered, replaced, failures *prometheus.Desc
}

func newSharedCollector(stats func() SharedStats) *sharedCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &sharedCollector{
		stats:       stats,
		up:          desc("comporta_store_up", "Whether the shared store answers: 1 or 0."),
		instances:   desc("comporta_store_instances", "Instances that share the store, as last known."),
		calls:       desc("comporta_store_calls_total", "Calls to the shared store."),
		takes:       desc("comporta_store_takes_total", "Takes that went with those calls."),
		settlements: desc("comporta_store_settlements_total", "Settlements that went with those calls."),
		remembered:  desc("comporta_store_remembered_denials_total", "Denials that were answered from memory, without a call."),
		replaced:    desc("comporta_store_replaced_values_total", "Values of another type or form that were replaced."),
		failures:    desc("comporta_store_errors_total", "Calls to the shared store that failed.", "cause"),
	}
}

// Describe is part of prometheus.Collector.
func (c *sharedCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.up, c.instances, c.calls, c.takes, c.settlements, c.remembered, c.replaced, c.failures} {
		ch <- d
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
	ch <- prometheus.MustNewConstMetric(c.calls, prometheus.CounterValue, float64(s.Calls))
	ch <- prometheus.MustNewConstMetric(c.takes, prometheus.CounterValue, float64(s.Takes))
	ch <- prometheus.MustNewConstMetric(c.settlements, prometheus.CounterValue, float64(s.Settlements))
	ch <- prometheus.MustNewConstMetric(c.remembered, prometheus.CounterValue, float64(s.Remembered))
	ch <- prometheus.MustNewConstMetric(c.replaced, prometheus.CounterValue, float64(s.Replaced))
	for cause, n := range s.Errors {
		ch <- prometheus.MustNewConstMetric(c.failures, prometheus.CounterValue, float64(n), cause)
	}
}
