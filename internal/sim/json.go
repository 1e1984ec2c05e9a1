package sim

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/comporta/comporta"
)

// answer is a decision as vectors and JSON write it: times in whole microseconds.
type answer struct {
	Allowed    bool  `json:"allowed"`
	Limit      int64 `json:"limit"`
	Remaining  int64 `json:"remaining"`
	ResetAfter int64 `json:"reset_after_us"`
	FullAfter  int64 `json:"full_after_us"`
	RetryAfter int64 `json:"retry_after_us"` // −1 is never
	Delay      int64 `json:"delay_us"`
}

func answerOf(d comporta.Decision) answer {
	a := answer{d.Allowed, d.Limit, d.Remaining, d.ResetAfter.Microseconds(), d.FullAfter.Microseconds(), d.RetryAfter.Microseconds(), d.Delay.Microseconds()}
	if d.RetryAfter == comporta.Never {
		a.RetryAfter = -1
	}
	return a
}

// The document of WriteJSON.
type (
	jsonReport struct {
		StartUS int64       `json:"start_us"`
		Bursts  []jsonBurst `json:"bursts"`
		Runs    []jsonRun   `json:"runs"`
	}
	jsonBurst struct {
		AtUS    int64 `json:"at_us"`
		EveryUS int64 `json:"every_us"`
		Count   int   `json:"count"`
		Cost    int64 `json:"cost"`
	}
	jsonRun struct {
		Algorithm string         `json:"algorithm"`
		Limit     string         `json:"limit"`
		Notes     []string       `json:"notes"`
		Arrived   int            `json:"arrived"`
		Admitted  int            `json:"admitted"`
		PerBurst  []int          `json:"admitted_per_burst"`
		Decisions []jsonDecision `json:"decisions"`
	}
	jsonDecision struct {
		AtUS int64 `json:"at_us"`
		Cost int64 `json:"cost"`
		answer
	}
)

// WriteJSON writes the report as one line of JSON. Times are whole microseconds,
// those of arrivals after time 0, whose instant is start_us; a retry_after_us of
// −1 is never.
func (r *Report) WriteJSON(w io.Writer) error {
	out := jsonReport{StartUS: int64(r.Start)}
	for _, b := range r.Bursts {
		out.Bursts = append(out.Bursts, jsonBurst{b.At.Microseconds(), b.Every.Microseconds(), b.Count, b.Cost})
	}
	for _, run := range r.Runs {
		j := jsonRun{Algorithm: run.Limit.Algorithm.String(), Limit: run.Limit.String(), Notes: append([]string{}, run.Notes...), PerBurst: run.Admitted}
		j.Arrived, j.Admitted = run.Total()
		for _, a := range run.Answers {
			j.Decisions = append(j.Decisions, jsonDecision{a.At.Microseconds(), a.Cost, answerOf(a.Decision)})
		}
		out.Runs = append(out.Runs, j)
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}
