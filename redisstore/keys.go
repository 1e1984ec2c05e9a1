package redisstore

import (
	"strconv"

	"github.com/comporta/comporta"
)

func itoa(n int) string { return strconv.Itoa(n) }

// keyOf is the name of a key in Redis: prefix:{length:identity}length:limit. The
// lengths keep any two keys apart, whatever they are made of; what stands in
// braces, the hash tag, puts all limits of one identity into one slot.
func (s *Store) keyOf(k comporta.Key) string {
	b := make([]byte, 0, len(s.prefix)+len(k.Identity)+len(k.Limit)+12)
	b = append(b, s.prefix...)
	b = append(b, ':', '{')
	b = strconv.AppendInt(b, int64(len(k.Identity)), 10)
	b = append(b, ':')
	b = append(b, k.Identity...)
	b = append(b, '}')
	b = strconv.AppendInt(b, int64(len(k.Limit)), 10)
	b = append(b, ':')
	b = append(b, k.Limit...)
	return string(b)
}

// ledgerOf is the name of the key that says who holds units of k ahead. No limit's
// key looks so: after the brace those go on with a digit.
func (s *Store) ledgerOf(k comporta.Key) string {
	name := s.keyOf(k)
	brace := len(name) - len(k.Limit) - len(strconv.Itoa(len(k.Limit))) - len(":")
	return name[:brace] + "lease:" + name[brace:]
}

// slotOf is the slot of an identity's keys in a cluster: CRC16 (XMODEM) of the
// hash tag, mod 16,384, as the Redis Cluster specification has it. A tag ends at
// the first brace.
func slotOf(identity string) uint16 {
	var buf [20]byte
	crc := crc16(0, strconv.AppendInt(buf[:0], int64(len(identity)), 10))
	crc = crc16(crc, []byte{':'})
	for i := range len(identity) {
		if identity[i] == '}' {
			identity = identity[:i]
			break
		}
	}
	return crc16(crc, identity) % 16384
}

func crc16[T string | []byte](crc uint16, b T) uint16 {
	for i := range len(b) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^b[i]]
	}
	return crc
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
