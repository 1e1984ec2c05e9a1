package memstore

import (
	"math/bits"
	"sort"

	"github.com/comporta/comporta"
)

// A ring is one key's sliding log: entries of eight bytes, oldest first, in a
// slice that wraps around and grows by half. An entry is the low bits of its
// instant and of the sum of all costs up to it, as many of each as the limit
// needs; the newest instant and the sum in full are beside them. So the cost of
// any stretch is one subtraction, and "when will enough have left" a binary
// search. Where limit and window together need more than 64 bits, an entry is
// two words.
type ring struct {
	words []uint64
	size  int // entries that there is room for
	head  int // index of the oldest entry
	n     int // entries
	width int // words an entry

	last  comporta.Instant // of the newest entry
	total int64            // of all costs up to the newest entry
	gone  int64            // of all costs that have left

	timeBits, sumBits uint
}

const noRing = ^uint32(0)

var _ comporta.Log = (*ring)(nil)

func (r *ring) bytes() int { return 8 * len(r.words) }

// at is the i-th entry, oldest first: its instant and the sum up to it.
func (r *ring) at(i int) (t comporta.Instant, sum int64) {
	k := r.head + i
	if k >= r.size {
		k -= r.size
	}
	if r.width == 2 {
		return comporta.Instant(r.words[2*k]), int64(r.words[2*k+1])
	}
	w := r.words[k]
	timeMask, sumMask := uint64(1)<<r.timeBits-1, uint64(1)<<r.sumBits-1
	ago := (uint64(r.last) - w>>r.sumBits) & timeMask
	left := (uint64(r.total) - w) & sumMask
	return r.last - comporta.Instant(ago), r.total - int64(left)
}

func (r *ring) set(i int, t comporta.Instant, sum int64) {
	k := r.head + i
	if k >= r.size {
		k -= r.size
	}
	if r.width == 2 {
		r.words[2*k], r.words[2*k+1] = uint64(t), uint64(sum)
		return
	}
	r.words[k] = uint64(t)&(1<<r.timeBits-1)<<r.sumBits | uint64(sum)&(1<<r.sumBits-1)
}

// after is the index of the first entry later than t.
func (r *ring) after(t comporta.Instant) int {
	if r.n == 0 || r.last <= t {
		return r.n
	}
	if oldest, _ := r.at(0); oldest > t {
		return 0
	}
	// Mostly few have left since the last look: in steps that double, then exactly.
	step := 1
	for step < r.n {
		if at, _ := r.at(step); at > t {
			break
		}
		step *= 2
	}
	from := step/2 + 1
	return from + sort.Search(min(step, r.n)-from, func(i int) bool {
		at, _ := r.at(from + i)
		return at > t
	})
}

// before is the sum of all costs up to entry i, not including it.
func (r *ring) before(i int) int64 {
	if i == 0 {
		return r.gone
	}
	_, sum := r.at(i - 1)
	return sum
}

// After is the total cost of the entries later than t, and the latest instant.
func (r *ring) After(t comporta.Instant) (int64, comporta.Instant) {
	return r.total - r.before(r.after(t)), r.last
}

// Reach is the instant of the entry later than t by which the costs reach n.
func (r *ring) Reach(t comporta.Instant, n int64) comporta.Instant {
	from := r.after(t)
	goal := r.before(from) + n
	i := from + sort.Search(r.n-1-from, func(i int) bool {
		_, sum := r.at(from + i)
		return sum >= goal
	})
	at, _ := r.at(i)
	return at
}

// At is the total cost of the entries at t.
func (r *ring) At(t comporta.Instant) int64 {
	return r.before(r.after(t)) - r.before(r.after(t-1))
}

// apply does an edit, for a log of rule. Short of memory it may merge
// neighbouring entries at the later instant: that never admits more than the
// exact log, but may for a while refuse more.
func (r *ring) apply(e *comporta.Edit, rule *comporta.Rule, full bool) {
	if e.Dropping {
		r.drop(r.after(e.Drop))
	}
	if e.Cut > 0 {
		r.cut(e.Cut)
	}
	r.shape(rule) // now that what a smaller limit has no bits for has left
	if e.Clamping && r.n > 0 && r.last > e.Clamp {
		r.clamp(e.Clamp)
	}
	if e.Back > 0 {
		r.back(e.BackAt, e.Back)
	}
	if e.Add > 0 {
		r.add(e.AddAt, e.Add, full)
	}
	if r.size > 8 && r.n < r.size/4 {
		r.resize(2 * r.n)
	}
}

// shape fits the entries to a rule's numbers, writing them anew when those changed.
func (r *ring) shape(rule *comporta.Rule) {
	// All entries are within one window of the newest; the sum is at most twice the limit.
	timeBits := uint(bits.Len64(uint64(rule.Limit().Window / 1000)))
	sumBits := uint(bits.Len64(uint64(2*rule.Full()))) + 1
	width := 1
	if timeBits+sumBits > 64 {
		timeBits, sumBits, width = 0, 0, 2
	} else {
		timeBits = 64 - sumBits // the rest is to spare
	}
	if r.width == width && r.timeBits == timeBits && r.sumBits == sumBits {
		return
	}
	old := *r
	*r = ring{width: width, last: old.last, total: old.total, gone: old.gone, timeBits: timeBits, sumBits: sumBits}
	if old.n > 0 {
		r.words, r.size, r.n = make([]uint64, old.n*width), old.n, old.n
		for i := range old.n {
			t, sum := old.at(i)
			r.set(i, t, sum)
		}
	}
}

// drop lets the n oldest entries go.
func (r *ring) drop(n int) {
	if n == 0 {
		return
	}
	r.gone = r.before(n)
	if r.n -= n; r.n == 0 {
		r.head = 0
		return
	}
	if r.head += n; r.head >= r.size {
		r.head -= r.size
	}
}

// cut lets the oldest units go, and the entries that they were all of.
func (r *ring) cut(units int64) {
	goal := r.gone + units
	r.drop(sort.Search(r.n, func(i int) bool {
		_, sum := r.at(i)
		return sum > goal
	}))
	r.gone = min(goal, r.total)
}

// clamp moves entries later than t to it: they become one entry. The others are
// told by their low bits, and so need no change.
func (r *ring) clamp(t comporta.Instant) {
	first := r.after(t)
	if first > 0 {
		if at, _ := r.at(first - 1); at == t {
			first--
		}
	}
	r.n, r.last = first+1, t
	r.set(first, t, r.total)
}

// back takes units off the entry at t, and the entry away when it has none left.
// It costs time in proportion to the entries since: a settle is of a recent take.
func (r *ring) back(t comporta.Instant, units int64) {
	i := r.after(t - 1)
	units = min(units, r.At(t))
	if units == 0 {
		return
	}
	_, sum := r.at(i)
	if emptied := r.before(i) == sum-units; emptied {
		for j := i + 1; j < r.n; j++ {
			at, s := r.at(j)
			r.set(j-1, at, s)
		}
		if r.n--; i == r.n && i > 0 {
			r.last, _ = r.at(i - 1)
		}
	}
	for ; i < r.n; i++ {
		at, s := r.at(i)
		r.set(i, at, s-units)
	}
	r.total -= units
}

// add records units at t, which no entry is later than.
func (r *ring) add(t comporta.Instant, units int64, full bool) {
	r.total += units
	if r.n > 0 && r.last == t {
		r.set(r.n-1, t, r.total)
		return
	}
	if r.n == r.size {
		if full && r.n > 1 {
			r.merge()
		} else {
			r.resize(r.n + r.n/2 + 1)
		}
	}
	r.last = t
	r.set(r.n, t, r.total)
	r.n++
}

// merge makes one entry of every two neighbours, at the later one's instant.
func (r *ring) merge() {
	kept := 0
	for i := r.n & 1; i < r.n; i += 2 {
		t, sum := r.at(i + 1 - r.n&1)
		r.set(kept, t, sum)
		kept++
	}
	r.n = kept
}

// resize moves the entries to a slice for that many, in order.
func (r *ring) resize(capacity int) {
	words := make([]uint64, capacity*r.width)
	for i := range r.n {
		k := r.head + i
		if k >= r.size {
			k -= r.size
		}
		copy(words[i*r.width:], r.words[k*r.width:(k+1)*r.width])
	}
	r.words, r.size, r.head = words, capacity, 0
}
