package main

import (
	"slices"
	"time"

	"github.com/comporta/comporta/bench/internal/report"
)

// The window is so long that little comes back while we measure: an allowed
// request finds a live key, and a denied one stays denied.
const window = 400 * 24 * time.Hour

// A scenario is measured with all peers, and those of ours that its lines name, in
// turns.
type scenario struct {
	name    string
	keys    int
	callers int
	denied  bool // all keys are spent beforehand
	lines   []line
}

// A line is a row of the table: one of ours beside a peer.
type line struct {
	ours     string
	quantity quantity
	beside   string // whom; "" is the best of the peers
	target   report.Target
}

// parity is what one run can tell from equal.
const parity = 0.95

var scenarios = []scenario{
	{name: "10,000 keys, 256 callers", keys: 10_000, callers: 256, lines: []line{
		{ours: plain, quantity: rate, target: report.Target{Ratio: 1.6, AimRatio: 2}},
		{ours: plain, quantity: serverCPU, target: report.Target{Most: 5}},
		{ours: plain, quantity: clientCPU},
		{ours: plain, quantity: p999},
		{ours: overGoRedis, quantity: rate},
		{ours: lease10, quantity: rate, target: report.Target{Ratio: 5, AimRatio: 8}},
		{ours: lease10, quantity: p999},
		{ours: lease100, quantity: rate, target: report.Target{Ratio: 15, AimRatio: 30}},
		{ours: lease100, quantity: p999},
	}},
	{name: "10,000 keys, 64 callers", keys: 10_000, callers: 64, lines: []line{
		{ours: plain, quantity: rate, target: report.Target{Ratio: 1.1}},
		{ours: plain, quantity: serverCPU, target: report.Target{Most: 5}},
		{ours: plain, quantity: clientCPU},
		{ours: overGoRedis, quantity: rate},
	}},
	{name: "10,000 keys, 1 caller", keys: 10_000, callers: 1, lines: []line{
		{ours: plain, quantity: p50, target: report.Target{Ratio: parity}},
		{ours: plain, quantity: serverCPU},
		{ours: plain, quantity: clientCPU},
		{ours: overGoRedis, quantity: p50},
	}},
	{name: "1 key, 256 callers", keys: 1, callers: 256, lines: []line{
		{ours: plain, quantity: rate, target: report.Target{Ratio: 3, AimRatio: 6}},
		{ours: plain, quantity: serverCPU},
		{ours: plain, quantity: clientCPU},
	}},
	{name: "1 key, 256 callers, denied", keys: 1, callers: 256, denied: true, lines: []line{
		{ours: plain, quantity: rate},
		{ours: plain, quantity: rate, beside: memory, target: report.Target{Ratio: parity}},
	}},
}

// allowance is the limit of the scenario: one unit, spent beforehand, where all is
// to be denied; else more than a run can ask for, and little more, so that budgets
// are not full again between two requests.
func (s scenario) allowance() allowance {
	if s.denied {
		return allowance{units: 1, window: window}
	}
	return allowance{units: max(10_000_000, 1_000_000_000/s.keys), window: window}
}

// sides are those that run in the scenario.
func (s scenario) sides() []side {
	chosen := slices.Clone(peers)
	for _, o := range others {
		if slices.ContainsFunc(s.lines, func(l line) bool { return l.ours == o.name || l.beside == o.name }) {
			chosen = append(chosen, o)
		}
	}
	return chosen
}

// rows are the scenario's lines, filled in.
func (s scenario) rows(results []result) []report.Row {
	value := func(name string, q quantity) report.Value {
		i := slices.IndexFunc(results, func(r result) bool { return r.name == name })
		return report.Value{Name: name, Of: q.of(results[i])}
	}
	var rows []report.Row
	for _, l := range s.lines {
		r := report.Row{Scenario: s.name, Unit: l.quantity.unit, More: l.quantity.more, Ours: value(l.ours, l.quantity), Target: l.target}
		if l.ours != plain {
			r.Scenario += ": " + l.ours
		}
		r.Scenario += l.quantity.name
		if l.beside != "" {
			r.Peer = value(l.beside, l.quantity)
		} else {
			var values []report.Value
			for _, p := range peers {
				values = append(values, value(p.name, l.quantity))
			}
			r.Peer = l.quantity.best(values)
		}
		rows = append(rows, r)
	}
	return rows
}
