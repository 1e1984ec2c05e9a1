package egress

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/comporta/comporta/client"
)

// health serves /healthz, /readyz and /metrics.
func (g *Gateway) health() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{g})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if g.stopping.Load() {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// A collector tells the counts of all APIs. Its labels are names of the file and
// reasons of package client: they are few, whatever is sent.
type collector struct{ gateway *Gateway }

// counts are the metrics that have no label but the API.
var counts = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(s *client.Stats) float64
}{
	{desc("attempts_total", "Requests sent to the API, retries included."), prometheus.CounterValue, func(s *client.Stats) float64 { return float64(s.Attempts) }},
	{desc("retries_total", "Retries among them."), prometheus.CounterValue, func(s *client.Stats) float64 { return float64(s.Retries) }},
	{desc("resent_total", "Requests that the HTTP library sent anew on another connection."), prometheus.CounterValue, func(s *client.Stats) float64 { return float64(s.Resent) }},
	{desc("refused_total", "Attempts that the API refused (429)."), prometheus.CounterValue, func(s *client.Stats) float64 { return float64(s.Refused) }},
	{desc("overloaded_total", "Attempts for which the API had too much to do (503)."), prometheus.CounterValue, func(s *client.Stats) float64 { return float64(s.Overloaded) }},
	{desc("failed_total", "Attempts that failed otherwise."), prometheus.CounterValue, func(s *client.Stats) float64 { return float64(s.Failed) }},
	{desc("waits_total", "Requests that waited."), prometheus.CounterValue, func(s *client.Stats) float64 { return float64(s.Waits) }},
	{desc("wait_seconds_total", "How long they waited together."), prometheus.CounterValue, func(s *client.Stats) float64 { return s.Waited.Seconds() }},
	{desc("waiting", "Requests in line now."), prometheus.GaugeValue, func(s *client.Stats) float64 { return float64(s.Waiting) }},
	{desc("gates_total", "How often the API said not to call before some time."), prometheus.CounterValue, func(s *client.Stats) float64 { return float64(s.Gates) }},
}

var (
	declined  = desc("declined_total", "Requests that were not sent, by reason.", "reason")
	abandoned = desc("abandoned_total", "Requests that were not sent again, by reason.", "reason")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("comporta_egress_"+name, help, append([]string{"api"}, labels...), nil)
}

func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, c := range counts {
		to <- c.desc
	}
	to <- declined
	to <- abandoned
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, a := range c.gateway.apis {
		s := a.transport.Stats()
		for _, c := range counts {
			to <- prometheus.MustNewConstMetric(c.desc, c.kind, c.value(&s), a.Name)
		}
		for reason, n := range s.Declined {
			to <- prometheus.MustNewConstMetric(declined, prometheus.CounterValue, float64(n), a.Name, string(reason))
		}
		for reason, n := range s.Abandoned {
			to <- prometheus.MustNewConstMetric(abandoned, prometheus.CounterValue, float64(n), a.Name, string(reason))
		}
	}
}
