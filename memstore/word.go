//go:build !race

package memstore

// store writes a word that an optimistic reader may be reading. The writer holds
// the shard's lock, whose release orders the write before the new sequence
// number, and a reader that saw the old one throws away what it read. A plain
// store of a word is enough for that, at a sixth of an atomic one's price; under
// the race detector, which cannot know this bargain, it is an atomic one.
func store(p *uint64, v uint64) { *p = v }
