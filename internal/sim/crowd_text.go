package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
)

// WriteText writes the report for people: a row for each kind of caller, and what
// the columns mean.
func (r *CrowdReport) WriteText(w io.Writer, s Screen) error {
	rows := [][]string{{"callers", "sent", "refused", "per success", "total time", "median", "p99", "spike"}}
	for _, run := range r.Runs {
		took := secondsText(run.Took)
		if run.Given {
			took = "not over"
		}
		rows = append(rows, []string{
			run.name(), strconv.Itoa(run.Sent), strconv.Itoa(run.Refused), fmt.Sprintf("%.2f", run.RefusedPerDone()),
			took, secondsText(run.Median), secondsText(run.P99), strconv.Itoa(run.Spike),
		})
		if run.Beside {
			rows = append(rows, []string{
				"the naive one", strconv.Itoa(run.NaiveSent), strconv.Itoa(run.NaiveRefused),
				fmt.Sprintf("%.2f", perDone(run.NaiveRefused, run.NaiveDone)), "", "", "", "",
			})
		}
	}
	c := &canvas{width: s.unlimited()}
	c.text(0, 0, r.title(), bold)
	c.table(2, rows, func(row, column int) ink {
		refused, err := strconv.ParseFloat(rows[row][3], 64)
		switch {
		case row == 0:
			return faint
		case column == 3 && err == nil && refused < 0.05:
			return good
		case column == 3 && refused > 1:
			return bad
		}
		return plain
	}, 0)
	line := 3 + len(rows)
	for _, run := range r.Runs {
		c.text(line, 0, run.name()+": "+run.Says, faint)
		line++
	}
	for _, text := range r.notes() {
		c.text(line, 0, text, faint)
		line++
	}
	return c.write(w, s.Color)
}

// title is what they all want.
func (r *CrowdReport) title() string {
	c := r.Crowd
	each := "one request"
	if c.Requests > 1 {
		each = fmt.Sprintf("%d requests", c.Requests)
	}
	return fmt.Sprintf("%d callers, %s each, against %s (%s)", c.Clients, each, c.Limit, c.Limit.Algorithm)
}

// notes say what the numbers are.
func (r *CrowdReport) notes() (notes []string) {
	for _, run := range r.Runs {
		if run.Given {
			notes = append(notes, fmt.Sprintf("%s: ended after %d attempts, with %d of %d answered", run.name(), mostAttempts, run.Done, r.Crowd.Clients*r.Crowd.Requests))
		}
	}
	return append(notes, "spike: the most attempts that reach the server within 100 ms, once the first half second is over")
}

func (r *CrowdRun) name() string {
	switch {
	case r.Beside:
		return "ours, beside a naive one"
	case r.Manner == Apart || r.Manner == Together:
		return "ours, " + string(r.Manner)
	}
	return string(r.Manner)
}

func secondsText(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// The document of WriteJSON: times in whole microseconds.
type (
	jsonCrowd struct {
		Limit     string         `json:"limit"`
		Algorithm string         `json:"algorithm"`
		Clients   int            `json:"clients"`
		Requests  int            `json:"requests"`
		Seed      uint64         `json:"seed"`
		Runs      []jsonCrowdRun `json:"runs"`
	}
	jsonCrowdRun struct {
		Callers      string  `json:"callers"`
		Says         string  `json:"says"`
		Done         int     `json:"done"`
		Over         bool    `json:"over"`
		Sent         int     `json:"sent"`
		Refused      int     `json:"refused"`
		PerSuccess   float64 `json:"refused_per_success"`
		TookUS       int64   `json:"total_us"`
		MedianUS     int64   `json:"median_us"`
		P99US        int64   `json:"p99_us"`
		Spike        int     `json:"spike"`
		NaiveSent    int     `json:"naive_sent,omitempty"`
		NaiveRefused int     `json:"naive_refused,omitempty"`
		NaiveDone    int     `json:"naive_done,omitempty"`
	}
)

// WriteJSON writes the report as one line of JSON.
func (r *CrowdReport) WriteJSON(w io.Writer) error {
	c := r.Crowd
	out := jsonCrowd{Limit: c.Limit.String(), Algorithm: c.Limit.Algorithm.String(), Clients: c.Clients, Requests: c.Requests, Seed: c.Seed}
	for _, run := range r.Runs {
		out.Runs = append(out.Runs, jsonCrowdRun{
			run.name(), run.Says, run.Done, !run.Given, run.Sent, run.Refused, run.RefusedPerDone(),
			run.Took.Microseconds(), run.Median.Microseconds(), run.P99.Microseconds(), run.Spike, run.NaiveSent, run.NaiveRefused, run.NaiveDone,
		})
	}
	return json.NewEncoder(w).Encode(out)
}
