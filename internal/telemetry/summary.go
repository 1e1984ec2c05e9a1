package telemetry

import "strings"

// A summary finds the keys with the most of a stream in constant space: the
// Space-Saving algorithm (Metwally, Agrawal, El Abbadi, "Efficient Computation of
// Frequent and Top-k Elements in Data Streams", 2005). A key that has no place
// takes that of the least count, and goes on from it. So a count errs upwards
// only, by at most what the place had before, which is kept beside it; no key
// without a place has more than the least count; and every key with more than a
// k-th of the stream has a place.
type summary struct {
	size   int // k, the places
	total  int64
	places map[uint64]int // by the key's hash
	counts []int64        // apart from the rest, as the least is searched in them
	keys   []place
	least  int64 // of all counts, once all places are taken; it never falls
	look   int   // where a least count is searched next
}

// A place is a key's part in a summary, beside its count.
type place struct {
	hash           uint64
	identity, name string
	before         int64 // of the count, that may be others'
}

func newSummary(size int) *summary {
	return &summary{size: size, places: make(map[uint64]int, size)}
}

// add counts units of a key. A key that has a place costs one look into a map.
func (s *summary) add(hash uint64, identity, name string, units int64) {
	s.total += units
	at, ok := s.places[hash]
	switch {
	case ok:
		s.counts[at] += units
		return
	case len(s.keys) < s.size:
		at = len(s.keys)
		s.keys, s.counts = append(s.keys, place{}), append(s.counts, 0)
	default:
		at = s.leastAt()
		delete(s.places, s.keys[at].hash)
	}
	s.places[hash] = at
	s.keys[at] = place{hash, strings.Clone(identity), shortened(name), s.counts[at]}
	s.counts[at] += units
}

// leastAt is a place with the least count. Counts only grow: a place that has it
// is searched from where the last one was, and the least is found anew once there
// is none, so that this takes constant time on average.
func (s *summary) leastAt() int {
	for range s.counts {
		if s.look++; s.look >= len(s.counts) {
			s.look = 0
		}
		if s.counts[s.look] == s.least {
			return s.look
		}
	}
	for i, n := range s.counts {
		if i == 0 || n < s.least {
			s.least, s.look = n, i
		}
	}
	return s.look
}

// unseen is the most that a key without a place may have.
func (s *summary) unseen() int64 {
	if len(s.keys) < s.size {
		return 0
	}
	return s.counts[s.leastAt()]
}

// longestName is how much is kept of a name: what a token says may be long.
const longestName = 128

func shortened(name string) string {
	if len(name) > longestName {
		return strings.ToValidUTF8(name[:longestName], "") + "…"
	}
	return strings.Clone(name)
}
