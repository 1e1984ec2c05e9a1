package redisstore

import "github.com/comporta/comporta"

// SlotOf and KeyOf are slotOf and keyOf for the tests outside.
func SlotOf(identity string) uint16 { return slotOf(identity) }

func (s *Store) KeyOf(k comporta.Key) string { return s.keyOf(k) }
