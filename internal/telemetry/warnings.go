package telemetry

import (
	"log/slog"
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// A Code names a warning for good: scripts may look for it.
type Code string

// The warnings that only traffic can give.
const (
	// UntrustedProxy: a private address that is not trusted sends a forwarding header.
	UntrustedProxy Code = "W-PROXY-UNTRUSTED"
	// SilentProxy: a peer whose connections begin with the PROXY protocol began one otherwise.
	SilentProxy Code = "W-PROXY-SILENT"
	// OneKey: one key has most of a limit's traffic.
	OneKey Code = "W-ONE-KEY"
	// NeverApplied: a limit that no request has been under.
	NeverApplied Code = "W-NEVER-APPLIED"
)

// warnings logs each warning once.
type warnings struct {
	log     *slog.Logger
	counted map[Code]prometheus.Counter
	mu      sync.Mutex
	told    map[warning]bool
}

// warning is what is told once: a code and the limit that it is about, "" for none.
type warning struct {
	code  Code
	limit string
}

func newWarnings(log *slog.Logger, counters *prometheus.CounterVec) *warnings {
	w := &warnings{log: log, counted: make(map[Code]prometheus.Counter), told: make(map[warning]bool)}
	for _, code := range []Code{UntrustedProxy, SilentProxy, OneKey, NeverApplied} {
		w.counted[code] = counters.WithLabelValues(string(code))
	}
	return w
}

// Warn logs a warning about the set-up, once for each code and limit ("" where
// it is about none). The text holds nothing that a client sent.
func (t *Telemetry) Warn(code Code, limit, text string) {
	w := t.warnings
	w.mu.Lock()
	told := w.told[warning{code, limit}]
	w.told[warning{code, limit}] = true
	w.mu.Unlock()
	if told {
		return
	}
	w.counted[code].Inc()
	attrs := []any{"code", string(code)}
	if limit != "" {
		attrs = append(attrs, "limit", limit)
	}
	w.log.Warn(text, attrs...)
}

// forget lets a limit that is gone be told of anew, should it come back.
func (w *warnings) forget(limit string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.told, func(told warning, _ bool) bool { return told.limit == limit })
}
