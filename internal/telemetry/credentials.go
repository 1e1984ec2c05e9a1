package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/comporta/comporta/identity"
)

// credential is a kind of what clients show to say who they are, from a fixed list.
type credential uint8

const (
	apiKey credential = iota
	user
	header
	credentials
)

var credentialNames = [credentials]string{"api_key", "user", "header"}

// credentialOf is the kind of a source's credential.
func credentialOf(s identity.Source) credential {
	switch s.String() {
	case "api_key":
		return apiKey
	case "user":
		return user
	}
	return header
}

// newLookupCounter asks for the number when metrics are asked for.
func newLookupCounter(failed func() uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name:        "comporta_credential_lookup_failures_total",
		Help:        "Look-ups of credentials at a source elsewhere that failed.",
		ConstLabels: prometheus.Labels{"source": credentialNames[apiKey]},
	}, func() float64 { return float64(failed()) })
}
