package main

import (
	"fmt"

	"github.com/comporta/comporta/bench/internal/report"
)

// Targets in microseconds of processor time a request.
var (
	targetAdded   = report.Target{Most: 2}
	targetAllowed = report.Target{Most: 95}
	targetRefused = report.Target{Most: 30}
)

// rows compare us with each of the peers, and with ourselves without a limit.
func rows(runners []*runner) []report.Row {
	const unit = "µs CPU/request"
	ours := make(map[mode][]float64)
	for _, r := range runners {
		if r.proxy.ours {
			ours[r.mode] = r.cpu
		}
	}
	rows := []report.Row{{Scenario: "gateway: what a limit adds", Unit: unit, Ours: report.Value{Of: added(ours[unlimited], ours[allowed])}, Target: targetAdded}}
	for _, m := range []mode{allowed, refused} {
		target := map[mode]report.Target{allowed: targetAllowed, refused: targetRefused}[m]
		for _, r := range runners {
			if !r.proxy.ours && r.mode == m {
				rows = append(rows, report.Row{
					Scenario: "gateway, " + string(m), Unit: unit, Target: target,
					Peer: report.Value{Name: r.proxy.name, Of: report.Median(r.cpu)}, Ours: report.Value{Of: report.Median(ours[m])},
				})
			}
		}
	}
	return rows
}

// eachTable is what each proxy needs in each mode.
func eachTable(runners []*runner) string {
	cells := [][]string{{"proxy", "mode", "µs CPU/request", "requests/s"}}
	for _, r := range runners {
		cells = append(cells, []string{r.proxy.name, string(r.mode), fmt.Sprintf("%.1f", report.Median(r.cpu)), fmt.Sprintf("%.0f", report.Median(r.rate))})
	}
	return report.Markdown(cells)
}

// added is the median of what the runs needed over those beside them, which were
// made just before: it moves less than the difference of two medians.
func added(without, with []float64) float64 {
	differences := make([]float64, len(with))
	for i := range with {
		differences[i] = with[i] - without[i]
	}
	return report.Median(differences)
}
