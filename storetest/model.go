package storetest

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/comporta/comporta"
)

// A Model is the reference store: a map and a loop over the step, under one
// lock. It keeps every key for ever and costs time in proportion to the length
// of a sliding log: it is for tests, to be right, not to be fast. It is safe for
// concurrent use.
type Model struct {
	// Now is the model's clock, read once a call. It must be set.
	Now func() time.Time

	mu     sync.Mutex
	keys   map[comporta.Key]*kept
	faults int
}

var (
	_ comporta.Store    = (*Model)(nil)
	_ comporta.Resetter = (*Model)(nil)
)

// kept is what the model knows of one key: the state and, of a sliding log, the
// entries.
type kept struct {
	state   comporta.State
	entries comporta.Entries
}

// Take is [comporta.Store]'s.
func (m *Model) Take(_ context.Context, takes []comporta.Take, out []comporta.Taken) error {
	if err := comporta.CheckTakes(takes); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := comporta.InstantOf(m.Now())
	cells := make([]comporta.Cell, len(takes))
	for i, take := range takes {
		cells[i] = m.cellLocked(take.Key)
	}
	comporta.AdvanceAll(takes, cells, now, out)
	for i, take := range takes {
		m.keepLocked(take.Key, &cells[i])
	}
	return nil
}

// Settle is [comporta.Store]'s. It settles one after the other.
func (m *Model) Settle(_ context.Context, settlements []comporta.Settlement, out []comporta.Taken) error {
	if err := comporta.CheckSettlements(settlements); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := comporta.InstantOf(m.Now())
	for i, s := range settlements {
		cell := m.cellLocked(s.Key)
		s.Rule.Settle(&cell, now, s.Taken, s.Actual)
		m.keepLocked(s.Key, &cell)
		cell = m.cellLocked(s.Key)
		s.Rule.Advance(&cell, now, 0, &out[i])
		m.keepLocked(s.Key, &cell)
	}
	return nil
}

// Reset is [comporta.Resetter]'s.
func (m *Model) Reset(_ context.Context, keys []comporta.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.keys, key)
	}
	return nil
}

// Len is the number of keys that are not known to be full.
func (m *Model) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.keys)
}

// ClockFaults is how many steps found the clock more than [comporta.MaxStep]
// before a key's last change.
func (m *Model) ClockFaults() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faults
}

func (m *Model) cellLocked(key comporta.Key) comporta.Cell {
	var cell comporta.Cell
	if k := m.keys[key]; k != nil {
		cell = k.cell()
	}
	cell.State.Phase = key.Phase()
	return cell
}

func (m *Model) keepLocked(key comporta.Key, cell *comporta.Cell) {
	if cell.Fault {
		m.faults++
	}
	if !cell.Changed {
		return
	}
	k := m.keys[key]
	if k == nil {
		k = &kept{}
	}
	k.apply(cell)
	if k.state.Zero() {
		delete(m.keys, key)
		return
	}
	if m.keys == nil {
		m.keys = make(map[comporta.Key]*kept)
	}
	// The caller's strings are the caller's: they may lie in a buffer that it uses again.
	own := comporta.Key{Limit: strings.Clone(key.Limit), Identity: strings.Clone(key.Identity)}
	m.keys[own] = k
}

// cell puts what is kept on the bench.
func (k *kept) cell() comporta.Cell {
	return comporta.Cell{State: k.state, Log: k.entries}
}

// apply keeps what a step made of the cell.
func (k *kept) apply(cell *comporta.Cell) {
	k.state, k.entries = cell.State, k.entries.Apply(cell.Edit)
}
