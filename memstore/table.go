package memstore

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// table is open addressing with linear probing over pointer-free slots. Its
// words are read without a lock by optimistic readers, so all go through load
// and store; whoever writes holds the shard's lock.
//
// It is an address and a length rather than a slice behind a pointer, because a
// shard then holds it in its first line: a look-up waits for two lines of memory,
// the shard's and the slot's, not for four. Both come from newTable together.
type table struct {
	base  unsafe.Pointer // to slots·slotWords words
	slots uint64
}

const (
	fewestSlots = 4
	// A table grows by a quarter when it is nine tenths full: a key costs 32 bytes
	// at 0.72 to 0.9 load, some 40 on average.
	fullTenths = 9
	growth     = 5 // quarters
)

// newTable is an empty table of so many slots, made an even number.
func newTable(slots int) table {
	slots += slots & 1
	words := make([]uint64, slots*slotWords)
	return table{base: unsafe.Pointer(unsafe.SliceData(words)), slots: uint64(slots)}
}

// at is the address of a word; slot is less than slots.
func (t table) at(slot uint64, word int) *uint64 {
	return (*uint64)(unsafe.Add(t.base, slot*slotWords*8+uint64(word)*8))
}

// room is how many keys the table takes.
func (t table) room() int { return int(t.slots) * fullTenths / 10 }

// home is where the search for a hash begins: at the first slot of a line of
// memory, so that both of its slots are looked at before another line is.
func (t table) home(hi uint64) uint64 {
	line, _ := bits.Mul64(hi, t.slots/2)
	return 2 * line
}

func (t table) load(slot uint64, word int) uint64 {
	return atomic.LoadUint64(t.at(slot, word))
}

func (t table) store(slot uint64, word int, v uint64) {
	store(t.at(slot, word), v)
}

// find is the slot of a key and its word 1, or found false and the slot where it
// would go. It ends whatever it reads: the caller checks that nothing moved.
func (t table) find(h hash) (slot, w1 uint64, found bool) {
	slot = t.home(h.hi)
	for range t.slots {
		hi := t.load(slot, 0)
		w1 = t.load(slot, 1)
		if hi == h.hi && uint32(w1>>32) == uint32(h.lo) && slotRule(w1) != noRule {
			return slot, w1, true
		}
		if slotRule(w1) == noRule {
			return slot, 0, false
		}
		if slot++; slot == t.slots {
			slot = 0
		}
	}
	return slot, 0, false
}

// put writes all of a slot.
func (t table) put(slot uint64, words [slotWords]uint64) {
	for i, w := range words {
		t.store(slot, i, w)
	}
}

// add puts a slot's words of a key that is not in the table.
func (t table) add(words [slotWords]uint64) {
	slot := t.home(words[0])
	for slotRule(t.load(slot, 1)) != noRule {
		if slot++; slot == t.slots {
			slot = 0
		}
	}
	t.put(slot, words)
}

// read is a slot's words.
func (t table) read(slot uint64) (words [slotWords]uint64) {
	for i := range words {
		words[i] = t.load(slot, i)
	}
	return words
}

// remove empties a slot and moves those behind it up, so that no search ends early.
func (t table) remove(slot uint64) {
	for next := slot; ; {
		if next++; next == t.slots {
			next = 0
		}
		words := t.read(next)
		if slotRule(words[1]) == noRule {
			break
		}
		// It may move up unless its home lies behind the gap.
		if home := t.home(words[0]); t.distance(home, next) >= t.distance(slot, next) {
			t.put(slot, words)
			slot = next
		}
	}
	t.put(slot, [slotWords]uint64{})
}

func (t table) distance(from, to uint64) uint64 {
	if to < from {
		to += t.slots
	}
	return to - from
}
