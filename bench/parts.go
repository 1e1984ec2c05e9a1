package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/comporta/comporta/bench/internal/report"
)

// keyed measures every scenario of every group.
func (b *bench) keyed() error {
	for _, g := range groups {
		g.scenarios = slices.DeleteFunc(slices.Clone(g.scenarios), func(s scenario) bool { return !b.only.MatchString(g.name(s)) })
		if len(g.scenarios) == 0 {
			continue
		}
		say("preparing %s, %s", report.Count(g.keys, "key"), g.answer())
		c, err := assemble(g.contenders(), setup{Kind: "keyed", Allowance: g.allowance(), Keys: g.keys, Fill: 1})
		if err != nil {
			return err
		}
		for _, s := range g.scenarios {
			say("measuring %s", g.name(s))
			results, err := c.contest(b.rounds, round{Zipf: s.zipf, Goroutines: s.goroutines, For: b.round}, g.deny)
			if err != nil {
				return errors.Join(err, c.dismiss())
			}
			b.note(g.name(s), results)
			row := report.Row{Scenario: g.name(s), Unit: "ns", Target: s.target}
			var peers []report.Value
			for _, r := range results {
				if v := (report.Value{Name: r.name, Of: r.wall, CPU: r.cpu}); r.name == headline {
					row.Ours = v
				} else if !isOurs(r.name) {
					peers = append(peers, v)
				}
			}
			row.Peer = report.Best(peers)
			b.rows = append(b.rows, row)
		}
		if err := c.dismiss(); err != nil {
			return err
		}
	}
	return nil
}

func isOurs(name string) bool {
	return slices.ContainsFunc(keyed, func(c contender) bool { return c.ours && c.name == name })
}

// memory measures what a million live keys weigh, and what they cost the collector.
func (b *bench) memory() error {
	base := setup{Kind: "keyed", Allowance: allowance{Units: 10_000, Window: window}, Keys: million, Fill: 1, Collect: true}
	var rows, cycles []report.Row
	var lightest, quickest []report.Value // the peers
	for _, contender := range keyed {
		if contender.name == takeOne || !b.only.MatchString("memory, "+contender.name) {
			continue
		}
		say("weighing %s", contender.name)
		r, err := once(contender.name, base)
		if err != nil {
			return err
		}
		bytes := report.Value{Name: contender.name, Of: float64(r.Heap) / million}
		cycle := report.Value{Name: contender.name, Of: r.Cycle.Seconds() * 1e3}
		b.weights = append(b.weights, []string{contender.name, decimal(bytes.Of), decimal(cycle.Of)})
		if !contender.ours {
			lightest, quickest = append(lightest, bytes), append(quickest, cycle)
			continue
		}
		size := report.Row{Scenario: report.Count(million, "key") + ", " + contender.name, Unit: "bytes/key", Ours: bytes, Target: keyBytes}
		time := report.Row{Scenario: size.Scenario, Unit: "collector ms/cycle", Ours: cycle, Target: cycleMillis}
		if contender.name == slidingLog { // its entries come on top
			size.Target, time.Target = report.Target{}, report.Target{}
		}
		rows, cycles = append(rows, size), append(cycles, time)
	}
	for i := range rows {
		rows[i].Peer = report.Best(lightest)
		cycles[i].Peer = report.Best(quickest)
	}
	b.rows = append(append(b.rows, rows...), cycles...)
	return b.logMemory()
}

// logMemory measures what a request weighs in a sliding log that holds many.
func (b *bench) logMemory() error {
	const each = 1000
	name := "1,000 keys of " + report.Count(each, "request")
	if !b.only.MatchString("memory, " + slidingLog) {
		return nil
	}
	r, err := once(slidingLog, setup{Kind: "keyed", Allowance: allowance{Units: 10_000, Window: window}, Keys: 1000, Fill: each})
	if err != nil {
		return err
	}
	bytes := float64(r.Heap) / (1000 * each)
	b.rows = append(b.rows, report.Row{Scenario: name + ", " + slidingLog, Unit: "bytes/request", Ours: report.Value{Of: bytes}, Target: requestBytes})
	return nil
}

// once is what making ready measures in a process of its own.
func once(name string, s setup) (answer, error) {
	c, err := assemble([]string{name}, s)
	if err != nil {
		return answer{}, err
	}
	return c.setups[0], c.dismiss()
}

// middleware measures each guard over the bare handler.
func (b *bench) middleware() error {
	var names []string
	for _, g := range guards {
		names = append(names, g.name)
	}
	for _, outcome := range []string{"allowed", "refused"} {
		const clients = 1000
		name := "middleware, " + outcome
		if !b.only.MatchString(name) {
			continue
		}
		say("measuring %s", name)
		refused := outcome == "refused"
		a := group{keys: clients, deny: refused}.allowance()
		if refused {
			names = names[1:] // the bare handler refuses nobody
		}
		c, err := assemble(names, setup{Kind: "middleware", Allowance: a, Keys: clients, Fill: 1})
		if err != nil {
			return err
		}
		results, err := c.contest(b.rounds, round{Goroutines: 1, For: b.round}, refused)
		if err := errors.Join(err, c.dismiss()); err != nil {
			return err
		}
		b.note(name, results)
		b.rows = append(b.rows, middlewareRows(name, results, refused)...)
	}
	return nil
}

// middlewareRows are the time and the allocations that each of ours adds.
func middlewareRows(name string, results []result, refused bool) []report.Row {
	var over result
	if !refused {
		over = results[0]
		name += ", over a bare handler"
	}
	var times, allocs []report.Value
	for _, r := range results {
		if r.name != bare && !guardNamed(r.name).ours {
			times = append(times, report.Value{Name: r.name, Of: r.wall - over.wall, CPU: r.cpu - over.cpu})
			allocs = append(allocs, report.Value{Name: r.name, Of: r.allocs - over.allocs})
		}
	}
	var rows []report.Row
	for _, r := range results {
		if !guardNamed(r.name).ours {
			continue
		}
		time := report.Row{Scenario: name + ": " + r.name, Unit: "ns", Peer: report.Best(times), Ours: report.Value{Of: r.wall - over.wall, CPU: r.cpu - over.cpu}}
		alloc := report.Row{Scenario: name + ": " + r.name, Unit: "allocations", Peer: report.Best(allocs), Ours: report.Value{Of: r.allocs - over.allocs}}
		if !refused {
			time.Target, alloc.Target = guardTime, guardAllocs
		}
		rows = append(rows, time, alloc)
	}
	return rows
}

func guardNamed(name string) guard {
	return guards[slices.IndexFunc(guards, func(g guard) bool { return g.name == name })]
}

// note keeps what each contender needed.
func (b *bench) note(scenario string, results []result) {
	for _, r := range results {
		b.results = append(b.results, []string{scenario, r.name, decimal(r.wall), decimal(r.cpu), decimal(r.collector), decimal(r.allocs)})
	}
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// each is what each contender needed, in tables.
func (b *bench) each() string {
	var tables []string
	if len(b.results) > 0 {
		tables = append(tables, report.Markdown(append([][]string{{"scenario", "contender", "ns", "CPU ns", "of it collector", "allocations"}}, b.results...)))
	}
	if len(b.weights) > 0 {
		tables = append(tables, report.Markdown(append([][]string{{report.Count(million, "key"), "bytes/key", "collector ms/cycle"}}, b.weights...)))
	}
	return strings.Join(tables, "\n")
}
