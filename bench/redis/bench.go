package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/comporta/comporta/bench/internal/report"
)

// A bench is one run: how it measures, and what it found.
type bench struct {
	rounds int
	round  time.Duration
	only   *regexp.Regexp // the scenarios to measure, by name
	fewer  int            // by how much to divide the keys, where that is more than 1

	version string // the server's
	rows    []report.Row
	results [][]string // of each side in each scenario
}

// run starts a server, checks all sides and measures every scenario.
func (b *bench) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "comporta-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := startServer(ctx, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	b.version = s.version
	for i, side := range slices.Concat(peers, others) {
		if err := check(ctx, side, s.address, i); err != nil {
			return err
		}
	}
	for _, c := range scenarios {
		if !b.only.MatchString(c.name) {
			continue
		}
		if b.fewer > 1 {
			c.keys = max(1, c.keys/b.fewer)
		}
		fmt.Fprintln(os.Stderr, "measuring", c.name)
		if err := b.measure(ctx, s, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// measure lets the sides of a scenario run in turns.
func (b *bench) measure(ctx context.Context, s *server, c scenario) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	keys := make([]string, c.keys)
	for i := range keys {
		keys[i] = keyName(i)
	}
	sides := c.sides()
	limiters := make([]*limiter, len(sides))
	for i, side := range sides {
		l, err := side.open(s.address, i, c.allowance())
		if err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
		defer l.close()
		if c.denied {
			err = l.block(ctx, keys)
		} else {
			err = l.fill(ctx, keys, c.callers)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
		limiters[i] = l
	}
	samples := make([][]*sample, len(sides))
	for round := range b.rounds + 1 {
		for i, l := range limiters {
			r, err := measure(ctx, s, l, keys, c.callers, b.round)
			if err != nil {
				return fmt.Errorf("%s: %w", sides[i].name, err)
			}
			if want := map[bool]int{false: r.decisions, true: 0}[c.denied]; r.allowed != want {
				return fmt.Errorf("%s allowed %d of %d requests: all should have got the same answer", sides[i].name, r.allowed, r.decisions)
			}
			if round > 0 {
				samples[i] = append(samples[i], r)
			}
		}
	}
	results := make([]result, len(sides))
	for i, side := range sides {
		r := summarise(side.name, samples[i])
		results[i] = r
		b.results = append(b.results, []string{c.name, r.name, decimal(r.rate), decimal(r.server), decimal(r.client), decimal(r.p50), decimal(r.p99), decimal(r.p999)})
	}
	b.rows = append(b.rows, c.rows(results)...)
	return nil
}

// keyName is the i-th client's key: 16 hexadecimal digits, none of them in order.
func keyName(i int) string { return fmt.Sprintf("%016x", uint64(i+1)*0x9e3779b97f4a7c15) }

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func (b *bench) environment() string {
	return "redis-server " + b.version + ", " + report.Environment()
}

func (b *bench) table() string { return report.Table(b.rows) }

// each is what each side needed in each scenario.
func (b *bench) each() string {
	head := []string{"scenario", "side", "1,000 decisions/s", "Redis's CPU µs", "client's CPU µs", "p50 µs", "p99 µs", "p99.9 µs"}
	return report.Markdown(append([][]string{head}, b.results...))
}
