package telemetry

import "sync"

// A sketch finds a key that has more than half of the traffic, in constant
// space: the Space-Saving algorithm (Metwally, Agrawal, El Abbadi, 2005) over
// rounds of sketchRound keys. A key's count errs upwards only, by the count that
// its place had before; that part is kept beside it and not believed.
type sketch struct {
	mu     sync.Mutex
	seen   int
	places [8]struct{ key, count, before uint64 }
}

// sketchRound is the number of keys that one answer is about.
const sketchRound = 1000

// add counts a key, by its hash, and says whether it ends a round in which one
// key had more than half. It never waits: what comes while another is being
// counted is left out, so that under load the sketch sees a sample.
func (s *sketch) add(key uint64) bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	least := 0
	for i := range s.places {
		if s.places[i].key == key && s.places[i].count > 0 {
			least = i
			break
		}
		if s.places[i].count < s.places[least].count {
			least = i
		}
	}
	p := &s.places[least]
	if p.key != key {
		p.key, p.before = key, p.count
	}
	p.count++
	if s.seen++; s.seen < sketchRound {
		return false
	}
	most := false
	for i := range s.places {
		most = most || s.places[i].count-s.places[i].before > sketchRound/2
		s.places[i].key, s.places[i].count, s.places[i].before = 0, 0, 0
	}
	s.seen = 0
	return most
}
