package telemetry

import (
	"cmp"
	"slices"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// By says what clients are ranked by.
type By uint8

const (
	// ByUse is the units that a limit was charged (what is given back later is not
	// taken off), or over all limits the requests that went on.
	ByUse By = iota
	// ByDenied is the requests that a limit denied, in shadow too, or over all limits
	// those that were refused.
	ByDenied
	ranks
)

// A Top is a ranking of clients, those with the most first.
type Top struct {
	// Since is when counting began: ten to twelve minutes ago, or with the process.
	Since comporta.Instant
	// Seen is what was counted, of all clients. Missed is how many requests were
	// left out, since another was being counted at that moment: the counts are then
	// of a sample.
	Seen, Missed int64
	Entries      []TopEntry
}

// A TopEntry is a client whose count is between the two numbers.
type TopEntry struct {
	// Identity is the client as stored, Name what operators call it.
	Identity, Name  string
	AtLeast, AtMost int64
}

// ranking ranks the clients of one limit, or of all.
type ranking [ranks]window

func (r *ranking) make(places int) {
	for i := range r {
		r[i].places = places
	}
}

// Top ranks clients under the limit of that name, or under all where it is "". It
// is false where the policy has no such limit, or one that is per everyone, and
// where nobody is ranked.
func (t *Telemetry) Top(by By, limit string, now comporta.Instant) (Top, bool) {
	r := &t.all
	if t.places == 0 {
		return Top{}, false
	}
	if limit != "" {
		l := t.book.Load().byName[limit]
		if l == nil || l.clients == nil {
			return Top{}, false
		}
		r = l.clients
	}
	top := r[by].top(now)
	top.Since = max(top.Since, comporta.Instant(t.began.Load()))
	if t.began.Load() == 0 {
		top.Since = now
	}
	return top, true
}

// rank counts a limit's part in a verdict, the i-th, for its client, whose
// identity's hash is given.
func (t *Telemetry) rank(l *limit, v *policy.Verdict, i int, hash uint64) {
	if l.clients == nil {
		return
	}
	a := &v.Applied[i]
	if units := a.Receipt.Cost; units > 0 {
		l.clients[ByUse].add(v.Now, hash, a, units)
	}
	decided := v.Failed == nil || a.Fallen == policy.Local
	if decided && !a.Decision.Allowed {
		l.clients[ByDenied].add(v.Now, hash, a, 1)
	}
	if !l.watchKeys {
		return
	}
	// Over all limits a request counts once for each client.
	switch {
	case v.Allowed && firstOf(v, i, false):
		t.all[ByUse].add(v.Now, hash, a, 1)
	case decided && a.Denies() && firstOf(v, i, true):
		t.all[ByDenied].add(v.Now, hash, a, 1)
	}
}

// firstOf says whether a verdict's i-th limit is the first about its client, or
// the first that denies it.
func firstOf(v *policy.Verdict, i int, denies bool) bool {
	for j := range i {
		if o := &v.Applied[j]; o.Identity == v.Applied[i].Identity && (!denies || o.Denies()) {
			return false
		}
	}
	return true
}

// A window has so many rounds of so many microseconds, and one that is not over.
const (
	topRounds  = 5
	roundTicks = int64(2 * time.Minute / time.Microsecond)
)

// top merges the rounds of a window: a key's count in a round in which it has no
// place is anything up to what such keys may have there.
func (w *window) top(now comporta.Instant) Top {
	w.mu.Lock()
	defer w.mu.Unlock()
	oldest := int64(now)/roundTicks - topRounds
	top := Top{Since: comporta.Instant(max(0, oldest) * roundTicks)}
	entries := make(map[uint64]*TopEntry)
	var unseen int64 // in the rounds that were merged already
	for i := range w.rounds {
		r := &w.rounds[i]
		if r.summary == nil || r.number < oldest {
			continue
		}
		top.Seen += r.total
		top.Missed += r.missed
		rest := r.unseen()
		for _, e := range entries {
			e.AtMost += rest
		}
		for j := range r.keys {
			k := &r.keys[j]
			e := entries[k.hash]
			if e == nil {
				e = &TopEntry{Identity: k.identity, Name: cmp.Or(k.name, k.identity), AtMost: unseen}
				entries[k.hash] = e
			} else {
				e.AtMost -= rest
			}
			e.AtLeast += r.counts[j] - k.before
			e.AtMost += r.counts[j]
		}
		unseen += rest
	}
	for _, e := range entries {
		top.Entries = append(top.Entries, *e)
	}
	slices.SortFunc(top.Entries, func(a, b TopEntry) int {
		return cmp.Or(cmp.Compare(b.AtLeast, a.AtLeast), cmp.Compare(b.AtMost, a.AtMost), cmp.Compare(a.Identity, b.Identity))
	})
	if len(top.Entries) > w.places {
		top.Entries = top.Entries[:w.places]
	}
	return top
}
