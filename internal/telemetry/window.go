package telemetry

import (
	"sync"
	"sync/atomic"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// A window ranks clients over a sliding period, in rounds: a summary each, the
// oldest of which makes way for a new one. Its memory is bounded, at some 200
// bytes for each place of a round. It never waits: what comes while another is
// being counted is left out, so that under load it sees a sample.
type window struct {
	places int
	missed atomic.Int64 // since a round was last told of it

	mu     sync.Mutex
	latest int64 // the number of the round that is counted in
	rounds [topRounds + 1]round
}

type round struct {
	*summary // nil before it was first counted in
	number   int64
	missed   int64
}

// add counts units of a client at an instant.
func (w *window) add(now comporta.Instant, hash uint64, a *policy.Applied, units int64) {
	if !w.mu.TryLock() {
		w.missed.Add(1)
		return
	}
	defer w.mu.Unlock()
	r := w.roundLocked(int64(now) / roundTicks)
	if w.missed.Load() > 0 {
		r.missed += w.missed.Swap(0)
	}
	r.add(hash, a.Identity, a.Name, units)
}

// roundLocked is the round of that number, or of the latest: a clock that steps
// back a little does not disturb it, and one that steps back far begins anew.
func (w *window) roundLocked(number int64) *round {
	if number < w.latest-1 {
		clear(w.rounds[:])
		w.latest = number
	}
	w.latest = max(w.latest, number)
	r := &w.rounds[w.latest%int64(len(w.rounds))]
	if r.summary == nil || r.number != w.latest {
		*r = round{summary: newSummary(w.places), number: w.latest}
	}
	return r
}
