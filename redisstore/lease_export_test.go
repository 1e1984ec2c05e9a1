package redisstore

import "github.com/comporta/comporta"

// Quiet waits until no wish and nothing that goes back is on its way.
func (s *Store) Quiet() { s.leases.out.Wait() }

// Held is how many units of a key lie here.
func (s *Store) Held(key comporta.Key) int64 { return s.leases.held(&key) }

func (s *Store) LedgerOf(k comporta.Key) string { return s.ledgerOf(k) }

// Leases is of how many keys there are leases, or rates.
func (s *Store) Leases() int { return int(s.leases.size.Load()) }

// FillLeases leaves no room for another key.
func FillLeases(s *Store) { s.leases.size.Store(mostLeases) }
