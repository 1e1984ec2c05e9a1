package sim

import (
	"fmt"
	"io"
	"strings"
)

// WriteText writes the report for people: a line for each number, with what it says.
func (r *FleetReport) WriteText(w io.Writer) error {
	var text strings.Builder
	row := func(number, name, note string) {
		line := fmt.Sprintf("%12s  %-25s  %s", number, name, note)
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	of := func(n, all int64) string {
		if all == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f %%", 100*float64(n)/float64(all))
	}
	row(fmt.Sprint(r.Requests), "requests", "")
	row(fmt.Sprint(r.Admitted), "admitted", "one limiter would admit "+fmt.Sprint(r.Ideal))
	row(fmt.Sprint(r.Locally), "of them without the store", of(r.Locally, r.Admitted))
	row(fmt.Sprint(r.Early), "refused early", "while a unit lay idle elsewhere, or was lost")
	row(fmt.Sprint(r.Over), "over, in any window", "more than the rule promises")
	row(fmt.Sprint(r.OverAligned), "over, in aligned windows", "")
	row(fmt.Sprintf("%.3f", r.CallsPerRequest()), "calls a request", fmt.Sprintf("%d calls", r.Calls))
	row(fmt.Sprint(r.Leased), "leased", fmt.Sprintf("%d came back unused", r.Returned))
	row(fmt.Sprint(r.Lying), "most lying in leases", "of one client")
	row(fmt.Sprint(r.Lost), "lost", "until they would have refilled")
	row(fmt.Sprint(r.Forgotten), "forgotten", "by a failover")
	_, err := io.WriteString(w, text.String())
	return err
}
