package memstore

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta"
)

// Options of a store; the zero Options are good for most.
type Options struct {
	// MaxKeys is how many keys the store holds at most; 0 means 1,000,000. (The one
	// overflow key of each limit comes on top.)
	MaxKeys int
	// MaxLogBytes is how much memory the entries of sliding logs take at most, beyond
	// a first one or two each; 0 means 256 MiB. At the bound a log that would grow merges neighbouring
	// entries instead, at the later instant: it never admits more than its limit,
	// but may refuse somewhat longer.
	MaxLogBytes int64
	// Save is the file that the states are kept in over a restart; "" for none.
	Save string
	// Sweep is how often keys that are full again are dropped in the background; 0
	// means every 10 s, less than 0 never. (A full table drops them anyway before it
	// grows.) With Now set, 0 means never.
	Sweep time.Duration
	// Now is the clock, for tests and simulations; nil is the monotonic clock,
	// anchored to the wall once at the start.
	Now func() time.Time
	// Logger is told of a damaged save file and of saves that fail; nil is slog.Default.
	Logger *slog.Logger
}

const (
	shards     = 1024
	shardShift = 54 // a hash's top ten bits are its shard
	// hashMask are the bits of a hash's lower word that the store goes by.
	hashMask = uint64(shards-1)<<shardShift | 1<<32 - 1

	defaultKeys     = 1_000_000
	defaultLogBytes = 256 << 20
	defaultSweep    = 10 * time.Second
)

// A Store keeps states in memory. It is safe for concurrent use.
type Store struct {
	key     hashKey
	clock   clock
	maxKeys int64
	maxLogs int64
	saver   *saver      // nil without Options.Save
	saving  atomic.Bool // from open to Close: changes are noted for the saver
	logger  *slog.Logger
	rules   rules
	stats   counters
	turn    atomic.Uint64 // where to look next for a key to drop
	spill   sync.Map      // hash → struct{}: the overflow keys in use, which are never dropped
	batches sync.Pool     // *batch

	stop    chan struct{} // closed by Close
	stopped sync.WaitGroup
	closing sync.Once
	closed  error

	shards *[shards]shard // apart, so that each begins at a line of memory
}

var (
	_ comporta.Store    = (*Store)(nil)
	_ comporta.Taker    = (*Store)(nil)
	_ comporta.Resetter = (*Store)(nil)
)

type counters struct {
	keys, evicted, overflowed, faults, logBytes atomic.Int64
}

// Stats are counts since the store was made, and what it holds now.
type Stats struct {
	// Keys is how many keys the store holds; LogBytes what its sliding logs take.
	Keys, LogBytes int64
	// Evicted keys were dropped for want of room before they were full again.
	Evicted int64
	// Overflowed is how many takes of new keys were counted against their limit's
	// overflow key, since there was no key to drop.
	Overflowed int64
	// ClockFaults is how many states went on from a clock that had stepped back by
	// more than 10 s.
	ClockFaults int64
}

// New makes a store, and with Options.Save reads what was saved. A damaged file
// is set aside, and said so to the logger; it is no error. An error is a file
// that cannot be read or written, or that another store has open.
//
// Close it when it saves; one that does not save may just be dropped when Sweep
// is negative or Now is set, else it has a goroutine that Close ends.
func New(o Options) (*Store, error) {
	if o.MaxKeys < 0 || o.MaxLogBytes < 0 {
		return nil, fmt.Errorf("memstore: MaxKeys %d and MaxLogBytes %d must not be negative", o.MaxKeys, o.MaxLogBytes)
	}
	s := &Store{
		clock: newClock(o.Now), shards: new([shards]shard), maxKeys: int64(o.MaxKeys), maxLogs: o.MaxLogBytes,
		logger: o.Logger, stop: make(chan struct{}),
	}
	if s.maxKeys == 0 {
		s.maxKeys = defaultKeys
	}
	if s.maxLogs == 0 {
		s.maxLogs = defaultLogBytes
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	for i := range s.key {
		var b [8]byte
		rand.Read(b[:]) // never fails
		s.key[i] = binary.LittleEndian.Uint64(b[:])
	}
	for i := range s.shards {
		s.shards[i].setTable(newTable(fewestSlots))
	}
	s.batches.New = func() any { return new(batch) }
	if o.Save != "" {
		if err := s.open(o.Save); err != nil {
			return nil, fmt.Errorf("memstore: %w", err)
		}
		s.background(saveEvery, s.save)
	}
	if o.Sweep == 0 && o.Now == nil {
		o.Sweep = defaultSweep
	}
	if o.Sweep > 0 {
		s.background(o.Sweep, s.Sweep)
	}
	return s, nil
}

// background does something again and again until the store closes.
func (s *Store) background(every time.Duration, do func()) {
	s.stopped.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				do()
			case <-s.stop:
				return
			}
		}
	})
}

// Close stops what runs in the background and, with Options.Save, writes all
// states to the file. A take after Close still counts, but is not saved.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		s.stopped.Wait()
		if s.saver != nil {
			if err := s.closeSave(); err != nil {
				s.closed = fmt.Errorf("memstore: saving at close: %w", err)
			}
			s.saving.Store(false)
		}
	})
	return s.closed
}

// Stats counts. It costs next to nothing.
func (s *Store) Stats() Stats {
	return Stats{
		Keys: s.stats.keys.Load(), LogBytes: s.stats.logBytes.Load(), Evicted: s.stats.evicted.Load(),
		Overflowed: s.stats.overflowed.Load(), ClockFaults: s.stats.faults.Load(),
	}
}

func (s *Store) hash(k *comporta.Key) hash {
	h := s.key.sum(k)
	return hash{h.hi, h.lo & hashMask}
}

// overflow is the hash of a limit's overflow key: no client's, whatever it is
// called. Where others of one step have it already, it is the limit's next one.
func (s *Store) overflow(limit string, others []hash) hash {
	other := hashKey{^s.key[0], s.key[1]}
	for key := (comporta.Key{Limit: limit}); ; key.Identity += "+" {
		h := other.sum(&key)
		h.lo &= hashMask
		if !slices.Contains(others, h) {
			s.spill.Store(h, struct{}{})
			return h
		}
	}
}

// phase is the key's, or the overflow key's where h is of that: its windows must
// not move with every client that comes by.
func (s *Store) phase(key *comporta.Key, h hash) uint64 {
	if h != s.hash(key) {
		return comporta.Key{Limit: key.Limit}.Phase()
	}
	return key.Phase()
}

func (h hash) shard() int { return int(h.lo >> shardShift) }

func (s *Store) logsFull() bool { return s.stats.logBytes.Load() >= s.maxLogs }

// saves says whether changes of a rule's states are written each second, not
// only at close.
func (s *Store) saves(rule *comporta.Rule) bool {
	return s.saving.Load() && rule.FillTime() >= dropsAfter
}
