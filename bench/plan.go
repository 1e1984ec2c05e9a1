package main

import (
	"strings"
	"time"

	"github.com/comporta/comporta/bench/internal/report"
)

// The windows are so long that little comes back while we measure: an allowed
// request finds a live key, and a denied one stays denied.
const window = 400 * 24 * time.Hour

// A scenario is what the contenders of one group are measured in, in turns.
type scenario struct {
	zipf       bool
	goroutines int
	target     report.Target
}

// A group of scenarios is measured with the same keys, made once.
type group struct {
	keys       int
	deny       bool
	algorithms bool // all five of ours, not only the headline's
	scenarios  []scenario
}

var groups = []group{
	{keys: 1, scenarios: []scenario{
		{goroutines: 1},
		{goroutines: 2},
	}},
	{keys: 1, deny: true, scenarios: []scenario{
		{goroutines: 1},
		{goroutines: 2},
	}},
	{keys: 1000, algorithms: true, scenarios: []scenario{
		{goroutines: 1, target: report.Target{Ratio: 1.3, AimRatio: 2}},
		{goroutines: 2, target: report.Target{Ratio: 1.5}},
		{zipf: true, goroutines: 1},
		{zipf: true, goroutines: 2},
	}},
	{keys: 1000, deny: true, algorithms: true, scenarios: []scenario{
		{goroutines: 1},
		{goroutines: 2, target: report.Target{Ratio: 2.5}},
		{zipf: true, goroutines: 1},
		{zipf: true, goroutines: 2},
	}},
	{keys: million, algorithms: true, scenarios: []scenario{
		{goroutines: 1, target: report.Target{Ratio: 1.6, AimRatio: 2.5}},
		{goroutines: 2, target: report.Target{Ratio: 2, AimRatio: 3}},
		{zipf: true, goroutines: 1},
		{zipf: true, goroutines: 2, target: report.Target{Ratio: 2, AimRatio: 3}},
	}},
	{keys: million, deny: true, scenarios: []scenario{
		{goroutines: 1},
		{goroutines: 2},
		{zipf: true, goroutines: 1},
		{zipf: true, goroutines: 2},
	}},
}

const million = 1_000_000

// Targets of what a million live keys weigh.
var (
	keyBytes     = report.Target{Most: 64, AimMost: 40}
	requestBytes = report.Target{Most: 12, AimMost: 8}
	cycleMillis  = report.Target{Most: 10}
)

// Targets of what the middleware adds to a request.
var (
	guardTime   = report.Target{Most: 700}
	guardAllocs = report.Target{Most: 4}
)

// allowance is the limit of the group: one unit, spent beforehand, where all is
// to be denied; else more than the busiest key can ask for in a run, and no more,
// so that budgets are not full again between two requests.
func (g group) allowance() allowance {
	if g.deny {
		return allowance{Units: 1, Window: window}
	}
	return allowance{Units: max(4_000_000, 100_000_000_000/g.keys), Window: window}
}

// name is the scenario in words.
func (g group) name(s scenario) string {
	words := []string{report.Count(g.keys, "key")}
	if g.keys > 1 {
		words = append(words, map[bool]string{false: "uniform", true: "Zipf"}[s.zipf])
	}
	return strings.Join(append(words, report.Count(s.goroutines, "goroutine"), g.answer()), ", ")
}

func (g group) answer() string {
	if g.deny {
		return "denied"
	}
	return "allowed"
}

// contenders are those that run in the group.
func (g group) contenders() []string {
	var names []string
	for _, c := range keyed {
		if g.algorithms || !c.algorithms {
			names = append(names, c.name)
		}
	}
	return names
}
