package telemetry

import (
	"hash/maphash"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/comporta/comporta/policy"
)

// Options say what is counted.
type Options struct {
	// Engine names the limits.
	Engine *policy.Engine
	// Store tells how the store is, when metrics are asked for; nil tells nothing.
	Store func() StoreStats
	// Shared tells how the store that instances share is, when metrics are asked
	// for; nil where there is none.
	Shared func() SharedStats
	// FailedLookups tells how many look-ups of API keys have failed since the start,
	// when metrics are asked for; nil tells nothing.
	FailedLookups func() uint64
	// Log hears the warnings; nil drops them.
	Log *slog.Logger
	// Version is the program's, for comporta_build_info.
	Version string
	// Top is how many clients each ranking has places for ([Telemetry.Top]); 0 ranks
	// nobody. 100 take some 100 kB for each limit, and 70 ns of each of its decisions.
	Top int
}

// StoreStats are a store's numbers at one moment.
type StoreStats struct {
	// Keys are live now; LogBytes is what sliding logs take.
	Keys, LogBytes int64
	// Evictions, Overflows and ClockFaults have happened since the start: keys
	// dropped for room, calls that found no room, clocks that stepped back.
	Evictions, Overflows, ClockFaults int64
}

// A Result is what became of one request, from a fixed list.
type Result uint8

const (
	// Allowed went on to the upstream; Denied was over a limit; Malformed was
	// refused before any limit was asked, for a path that could be read two ways;
	// Undecided was refused because the store could not answer.
	Allowed Result = iota
	Denied
	Malformed
	Undecided
	// Refused was refused for itself: a list denies it, its body cannot be read, it
	// shows no identity where one is asked for. Listed went on because a list lets it.
	Refused
	Listed
	results
)

var resultNames = [results]string{"allowed", "denied", "malformed", "undecided", "refused", "listed"}

// String is the result as labels and logs have it.
func (r Result) String() string { return resultNames[r] }

// A Failure is why an upstream did not answer, from a fixed list.
type Failure uint8

const (
	// Unreachable did not take or keep the connection; TimedOut did not answer in
	// time; Left: the client hung up first.
	Unreachable Failure = iota
	TimedOut
	Left
	failures
)

var failureNames = [failures]string{"unreachable", "timeout", "client_left"}

// String is the failure as labels and logs have it.
func (f Failure) String() string { return failureNames[f] }

// classes are the labels of answers, by the hundreds of their status; 0 is an
// answer that was broken off.
var classes = [6]string{"aborted", "1xx", "2xx", "3xx", "4xx", "5xx"}

// Telemetry counts. It is safe for concurrent use; counting one request takes a
// few atomic additions and, for each limit, one short lock that is never waited for.
type Telemetry struct {
	registry  *prometheus.Registry
	inFlight  prometheus.Gauge
	requests  [results]prometheus.Counter
	answers   [len(classes)]prometheus.Counter
	latency   prometheus.Histogram
	failed    [failures]prometheus.Counter
	fallen    [policy.Deny + 1]prometheus.Counter // verdicts that the store had no part in, by their way
	unproved  [credentials]prometheus.Counter
	unsettled prometheus.Counter
	perLimit  perLimit
	book      atomic.Pointer[book]
	config    config

	all    ranking // of clients, over all limits
	places int
	began  atomic.Int64 // the instant of the first verdict; 0 before

	seed     maphash.Seed
	log      *slog.Logger
	warnings *warnings
}

// New starts counting from zero.
func New(o Options) *Telemetry {
	t := &Telemetry{
		registry: prometheus.NewRegistry(),
		seed:     maphash.MakeSeed(),
		log:      o.Log,
		places:   o.Top,
	}
	t.all.make(t.places)
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	t.gauge("comporta_build_info", "Always 1; the version is the label.", prometheus.Labels{"version": o.Version}).Set(1)
	t.inFlight = t.gauge("comporta_requests_in_flight", "Requests that are being answered now.", nil)
	requests := t.counters("comporta_requests_total", "Requests by what became of them.", "verdict")
	for i := range t.requests {
		t.requests[i] = requests.WithLabelValues(resultNames[i])
	}
	answers := t.counters("comporta_responses_total", "Answers by class of status; aborted ones were broken off.", "class")
	for i := range t.answers {
		t.answers[i] = answers.WithLabelValues(classes[i])
	}
	t.latency = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "comporta_upstream_response_seconds",
		Help:    "Time until the upstream began to answer.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	})
	t.registry.MustRegister(t.latency)
	failed := t.counters("comporta_upstream_failures_total", "Requests that the upstream did not answer.", "reason")
	for i := range t.failed {
		t.failed[i] = failed.WithLabelValues(failureNames[i])
	}
	fallen := t.counters("comporta_store_fallbacks_total", "Verdicts that the store had no part in, by what decided them.", "on_error")
	for way := range t.fallen {
		t.fallen[way] = fallen.WithLabelValues(fallenName(policy.OnError(way)))
	}
	unproved := t.counters("comporta_credentials_failed_total", "Credentials that were shown and prove nothing.", "source")
	for i := range t.unproved {
		t.unproved[i] = unproved.WithLabelValues(credentialNames[i])
	}
	if o.FailedLookups != nil {
		t.registry.MustRegister(newLookupCounter(o.FailedLookups))
	}
	if o.Store != nil {
		t.registry.MustRegister(newStoreCollector(o.Store))
	}
	if o.Shared != nil {
		t.registry.MustRegister(newSharedCollector(o.Shared))
	}
	t.warnings = newWarnings(t.log, t.counters("comporta_warnings_total", "Warnings about the set-up, each logged once.", "code"))
	t.unsettled = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "comporta_settle_failures_total", Help: "Answered requests whose cost the store could not settle.",
	})
	t.registry.MustRegister(t.unsettled)
	t.perLimit = t.newPerLimit()
	t.config = t.newConfig()
	t.Follow(o.Engine)
	return t
}

func (t *Telemetry) gauge(name, help string, labels prometheus.Labels) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	t.registry.MustRegister(g)
	return g
}

func (t *Telemetry) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	t.registry.MustRegister(c)
	return c
}

// Handler answers with all metrics in the Prometheus text format.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// Begin counts a request in; End counts it out. A status of 0 is an answer that
// was broken off.
func (t *Telemetry) Begin() { t.inFlight.Inc() }

// End says how a request ended.
func (t *Telemetry) End(r Result, status int) {
	t.inFlight.Dec()
	t.requests[r].Inc()
	class := status / 100
	if class >= len(classes) {
		class = len(classes) - 1
	}
	t.answers[class].Inc()
}

// UpstreamAnswered counts an upstream's answer that began after d.
func (t *Telemetry) UpstreamAnswered(d time.Duration) { t.latency.Observe(d.Seconds()) }

// UpstreamFailed counts a request that the upstream did not answer.
func (t *Telemetry) UpstreamFailed(f Failure) { t.failed[f].Inc() }
