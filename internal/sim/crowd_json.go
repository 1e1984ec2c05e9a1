package sim

import (
	"encoding/json"
	"fmt"
	"io"
)

// The document of WriteJSON.
type (
	jsonCrowd struct {
		Limit     string      `json:"limit"`
		Algorithm string      `json:"algorithm"`
		Clients   int         `json:"clients"`
		Requests  int         `json:"requests"`
		WithinUS  int64       `json:"start_within_us"`
		LatencyUS int64       `json:"latency_us"`
		JitterUS  int64       `json:"jitter_us"`
		Seed      uint64      `json:"seed"`
		OpensUS   int64       `json:"opens_us"`
		Parties   []jsonParty `json:"parties"`
	}
	jsonParty struct {
		Name       string       `json:"name"`
		Says       string       `json:"says"`
		Clients    int          `json:"clients"`
		Successes  int          `json:"successes"`
		Sent       int          `json:"sent"`
		Refused    int          `json:"refused"`
		PerSuccess float64      `json:"refused_per_success"`
		Stopped    bool         `json:"stopped"`
		TotalUS    *int64       `json:"total_us"`
		MedianUS   int64        `json:"median_wait_us"`
		P99US      int64        `json:"p99_wait_us"`
		Spike      int          `json:"spike"`
		Arrivals   jsonArrivals `json:"arrivals"`
	}
	jsonArrivals struct {
		StepUS   int64 `json:"step_us"`
		Admitted []int `json:"admitted"`
		Refused  []int `json:"refused"`
	}
)

// WriteJSON writes the report as one line of JSON. Times are whole microseconds;
// total_us is null for who was stopped. Arrivals count what reaches
// the server in each step.
func (r *CrowdReport) WriteJSON(w io.Writer) error {
	c := r.Crowd
	out := jsonCrowd{
		Limit: c.Limit.String(), Algorithm: c.Limit.Algorithm.String(), Clients: c.Clients, Requests: c.Requests, WithinUS: c.StartWithin.Microseconds(),
		LatencyUS: c.Latency.Microseconds(), JitterUS: c.Jitter.Microseconds(), Seed: c.Seed, OpensUS: r.Opens.Microseconds(),
	}
	for _, p := range r.Parties {
		j := jsonParty{
			Name: p.Name, Says: p.Says, Clients: p.Clients, Successes: p.Successes, Sent: p.Sent, Refused: p.Refused, PerSuccess: p.RefusedPerSuccess(),
			Stopped: p.Stopped, MedianUS: p.Median.Microseconds(), P99US: p.P99.Microseconds(), Spike: p.Spike,
			Arrivals: jsonArrivals{StepUS: p.bars.step.Microseconds(), Admitted: []int{}, Refused: []int{}},
		}
		if total := p.Took.Microseconds(); !p.Stopped {
			j.TotalUS = &total
		}
		for _, b := range p.bars.bars {
			j.Arrivals.Admitted, j.Arrivals.Refused = append(j.Arrivals.Admitted, b.admitted), append(j.Arrivals.Refused, b.refused)
		}
		out.Parties = append(out.Parties, j)
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}
