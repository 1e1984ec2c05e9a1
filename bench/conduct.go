package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/comporta/comporta/bench/internal/report"
)

// A company is the contenders of one group, each at work in a process of its own.
type company struct {
	names   []string
	workers []*colleague
	setups  []answer // what making ready measured
}

// assemble hires a worker for each name and lets one after another make ready.
func assemble(names []string, base setup) (*company, error) {
	c := &company{names: names}
	for _, name := range names {
		base.Contender = name
		w, err := hire()
		if err != nil {
			return nil, errors.Join(err, c.dismiss())
		}
		c.workers = append(c.workers, w)
		r, err := w.ask(order{Setup: &base})
		if err != nil {
			return nil, errors.Join(err, c.dismiss())
		}
		c.setups = append(c.setups, r)
	}
	return c, nil
}

func (c *company) dismiss() error {
	var errs []error
	for _, w := range c.workers {
		errs = append(errs, w.dismiss())
	}
	return errors.Join(errs...)
}

// contest lets the workers run in turns, so many rounds of them after one to warm
// up, and is what each measured. All requests must be answered as they should.
func (c *company) contest(rounds int, r round, denied bool) ([]result, error) {
	samples := make([][]sample, len(c.workers))
	for i := range rounds + 1 {
		for j, w := range c.workers {
			answer, err := w.ask(order{Round: &r})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.names[j], err)
			}
			s := answer.Sample
			if want := map[bool]int{false: s.Requests, true: 0}[denied]; s.Allowed != want {
				return nil, fmt.Errorf("%s allowed %d of %d requests: all should have got the same answer", c.names[j], s.Allowed, s.Requests)
			}
			if i > 0 {
				samples[j] = append(samples[j], s)
			}
		}
	}
	results := make([]result, len(samples))
	for j := range samples {
		results[j] = summarise(c.names[j], samples[j])
	}
	return results, nil
}

// A result is what one contender needs for a request, in nanoseconds.
type result struct {
	name      string
	wall, cpu float64 // medians of the rounds
	collector float64 // over all rounds, as cycles are few
	allocs    float64
}

func summarise(name string, samples []sample) result {
	var wall, cpu []float64
	var requests, allocs int
	var collector time.Duration
	for _, s := range samples {
		wall = append(wall, float64(s.Wall)/float64(s.Requests))
		cpu = append(cpu, float64(s.CPU)/float64(s.Requests))
		requests += s.Requests
		allocs += s.Allocations
		collector += s.Collector
	}
	return result{
		name: name, wall: report.Median(wall), cpu: report.Median(cpu),
		collector: float64(collector) / float64(requests), allocs: float64(allocs) / float64(requests),
	}
}

// say tells how far we are.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
