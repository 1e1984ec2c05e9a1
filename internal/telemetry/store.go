package telemetry

import "github.com/prometheus/client_golang/prometheus"

// storeCollector asks the store for its numbers when metrics are asked for.
type storeCollector struct {
	stats                                     func() StoreStats
	keys, logs, evictions, overflows, faulted *prometheus.Desc
}

func newStoreCollector(stats func() StoreStats) *storeCollector {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &storeCollector{
		stats:     stats,
		keys:      desc("comporta_store_keys", "Keys whose budget is not full."),
		logs:      desc("comporta_store_log_bytes", "What the sliding logs take."),
		evictions: desc("comporta_store_evictions_total", "Keys that were dropped for want of room."),
		overflows: desc("comporta_store_overflows_total", "Calls that were counted on an overflow key for want of room."),
		faulted:   desc("comporta_store_clock_faults_total", "Times that the clock had stepped back by more than ten seconds."),
	}
}

// Describe is part of prometheus.Collector.
func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.keys, c.logs, c.evictions, c.overflows, c.faulted} {
		ch <- d
	}
}

// Collect is part of prometheus.Collector.
func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	ch <- prometheus.MustNewConstMetric(c.keys, prometheus.GaugeValue, float64(s.Keys))
	ch <- prometheus.MustNewConstMetric(c.logs, prometheus.GaugeValue, float64(s.LogBytes))
	ch <- prometheus.MustNewConstMetric(c.evictions, prometheus.CounterValue, float64(s.Evictions))
	ch <- prometheus.MustNewConstMetric(c.overflows, prometheus.CounterValue, float64(s.Overflows))
	ch <- prometheus.MustNewConstMetric(c.faulted, prometheus.CounterValue, float64(s.ClockFaults))
}
