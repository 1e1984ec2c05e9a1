package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/comporta/comporta/bench/internal/process"
)

// A sample is what one round measured, over all its callers.
type sample struct {
	decisions, allowed int
	wall               time.Duration
	client, server     time.Duration // of the processors
	latencies          latencies
}

// A caller asks for one decision after another.
type caller struct {
	allowed   int
	latencies latencies
	err       error
}

// work asks about keys at random until the end. A decision's end is the next one's
// begin, so that the clock is read once for each.
func (c *caller) work(ctx context.Context, l *limiter, keys []string, random *rand.Rand, end time.Time) {
	for now := time.Now(); now.Before(end); {
		allowed, err := l.take(ctx, keys[random.IntN(len(keys))])
		if err != nil {
			c.err = err
			return
		}
		if allowed {
			c.allowed++
		}
		then := time.Now()
		c.latencies.add(then.Sub(now))
		now = then
	}
}

// measure lets callers ask for about so long. Each has a context that can be
// cancelled, as requests have.
func measure(ctx context.Context, s *server, l *limiter, keys []string, callers int, round time.Duration) (*sample, error) {
	all := make([]caller, callers)
	var ready, done sync.WaitGroup
	ready.Add(callers)
	begin := make(chan struct{})
	var end time.Time
	for i := range all {
		done.Go(func() {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			random := rand.New(rand.NewPCG(uint64(i), rand.Uint64()))
			ready.Done()
			<-begin
			all[i].work(ctx, l, keys, random, end)
		})
	}
	ready.Wait()
	runtime.GC() // what others left behind is not this side's to collect
	server, err := s.cpu(ctx)
	client, start := process.OwnCPU(), time.Now()
	end = start.Add(round)
	close(begin)
	done.Wait()
	r := &sample{wall: time.Since(start), client: process.OwnCPU() - client}
	if err != nil {
		return nil, err
	}
	after, err := s.cpu(ctx)
	if err != nil {
		return nil, err
	}
	r.server = after - server
	for i := range all {
		if all[i].err != nil {
			return nil, all[i].err
		}
		r.allowed += all[i].allowed
		r.latencies.merge(&all[i].latencies)
	}
	for _, n := range r.latencies {
		r.decisions += int(n)
	}
	return r, nil
}
