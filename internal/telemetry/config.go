package telemetry

import "github.com/prometheus/client_golang/prometheus"

// config tells which policy is in force, and what became of changes to it.
type config struct {
	info            *prometheus.GaugeVec
	applied, failed prometheus.Counter
	successful      prometheus.Gauge
	waiting         prometheus.Gauge
}

func (t *Telemetry) newConfig() config {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "comporta_config_info", Help: "1; the label names the policy file in force by its SHA-256.",
	}, []string{"hash"})
	t.registry.MustRegister(info)
	reloads := t.counters("comporta_config_reloads_total", "Changes of the policy, keys and other files, by whether they could be applied.", "result")
	c := config{
		info: info, applied: reloads.WithLabelValues("applied"), failed: reloads.WithLabelValues("failed"),
		successful: t.gauge("comporta_config_last_reload_successful", "Whether all files are in force as they are: 1 or 0.", nil),
		waiting:    t.gauge("comporta_config_waiting_words", "Words of the policy file in force that take a restart to apply.", nil),
	}
	c.successful.Set(1)
	return c
}

// InForce names the policy file that is in force; "" is none.
func (t *Telemetry) InForce(hash string) {
	t.config.info.Reset()
	if hash != "" {
		t.config.info.WithLabelValues(hash).Set(1)
	}
}

// Reloaded counts a change of a file, by whether it could be applied.
func (t *Telemetry) Reloaded(applied bool) {
	if applied {
		t.config.applied.Inc()
	} else {
		t.config.failed.Inc()
	}
}

// Current says whether all files are in force as they are now.
func (t *Telemetry) Current(current bool) {
	if current {
		t.config.successful.Set(1)
	} else {
		t.config.successful.Set(0)
	}
}

// Waiting says how many words of the policy take a restart to apply.
func (t *Telemetry) Waiting(words int) { t.config.waiting.Set(float64(words)) }
