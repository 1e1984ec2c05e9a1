package main

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta/bench/internal/process"
	"github.com/comporta/comporta/bench/internal/report"
)

// A load is the work of one goroutine: what it returns makes the next n requests
// and says how many were allowed.
type load func(goroutine int) (requests func(n int) (allowed int))

// A sample is what one round measured, over all its goroutines.
type sample struct {
	Requests, Allowed int
	Wall              time.Duration
	CPU               time.Duration // of the whole process, the collector's included
	Collector         time.Duration // of it the collector's, in cycles that ended in the round
	Allocations       int
}

// batch is how many requests are made between two looks at the clock.
const batch = 256

// measure makes requests for about so long.
func measure(l load, goroutines int, round time.Duration) sample {
	var s sample
	var requests, allowed atomic.Int64
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(goroutines)
	var end time.Time
	for g := range goroutines {
		done.Go(func() {
			next := l(g)
			ready.Done()
			<-begin
			n, ok := 0, 0
			for time.Now().Before(end) {
				ok += next(batch)
				n += batch
			}
			requests.Add(int64(n))
			allowed.Add(int64(ok))
		})
	}
	ready.Wait()
	mallocs, collector, cpu := allocations(), collectorCPU(), process.OwnCPU()
	start := time.Now()
	end = start.Add(round)
	close(begin)
	done.Wait()
	s.Wall = time.Since(start)
	s.CPU = process.OwnCPU() - cpu
	s.Collector = collectorCPU() - collector
	s.Allocations = int(allocations() - mallocs)
	s.Requests, s.Allowed = int(requests.Load()), int(allowed.Load())
	return s
}

func collectorCPU() time.Duration {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(s)
	return time.Duration(s[0].Value.Float64() * float64(time.Second))
}

// allocations counts those of this process so far. It stops the world.
func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// heapInUse is the memory that live objects hold, after a full collection.
func heapInUse() int {
	runtime.GC()
	runtime.GC() // the first may only have ended a cycle that was under way
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// cycleCPU is what one forced collection costs, the median of several.
func cycleCPU() time.Duration {
	costs := make([]time.Duration, 5)
	for i := range costs {
		before := collectorCPU()
		runtime.GC()
		costs[i] = collectorCPU() - before
	}
	return report.Median(costs)
}
