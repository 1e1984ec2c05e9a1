package memstore

import (
	"math/bits"

	"github.com/comporta/comporta"
)

// hash is a key as the store knows it: SipHash-1-3 of the limit's name and the
// identity, 128 bits, under a key of the store's own. Who does not know the key
// can neither find two keys that collide nor crowd one shard. (Aumasson and
// Bernstein, "SipHash: a fast short-input PRF", 2012. Its 64 bits are the
// exclusive or of all four words of the last state; these 128 are that of two
// pairs. Nobody outside ever sees one.)
type hash struct{ hi, lo uint64 }

// hashKey is the secret key of the hash.
type hashKey [2]uint64

// sum hashes a key. The lengths go first and each part is padded to whole
// words, so that no two keys are the same words.
func (k *hashKey) sum(key *comporta.Key) hash {
	v0 := k[0] ^ 0x736f6d6570736575
	v1 := k[1] ^ 0x646f72616e646f6d
	v2 := k[0] ^ 0x6c7967656e657261
	v3 := k[1] ^ 0x7465646279746573

	m := uint64(len(key.Limit)) | uint64(len(key.Identity))<<32
	v0, v1, v2, v3 = absorb(v0, v1, v2, v3, m)
	part := key.Limit
	for range 2 {
		rest := part
		for ; len(rest) >= 8; rest = rest[8:] {
			v0, v1, v2, v3 = absorb(v0, v1, v2, v3, word(rest))
		}
		if n := len(rest); n > 0 {
			if len(part) >= 8 { // one load, of which the bytes that came before are shifted out
				m = word(part[len(part)-8:]) >> (64 - 8*n)
			} else {
				m = few(part)
			}
			v0, v1, v2, v3 = absorb(v0, v1, v2, v3, m)
		}
		part = key.Identity
	}

	v2 ^= 0xff
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	return hash{v0 ^ v1, v2 ^ v3}
}

// absorb takes in a word by one round.
func absorb(v0, v1, v2, v3, m uint64) (uint64, uint64, uint64, uint64) {
	v0, v1, v2, v3 = round(v0, v1, v2, v3^m)
	return v0 ^ m, v1, v2, v3
}

func round(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v2 += v3
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 = bits.RotateLeft64(v0, 32) + v3
	v2 += v1
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}

// word is the first 8 bytes, little-endian; the compiler makes it one load.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// few is 1 to 7 bytes as a word.
func few(s string) (m uint64) {
	if len(s) >= 4 { // two loads, which may overlap
		hi := s[len(s)-4:]
		return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			(uint64(hi[0])|uint64(hi[1])<<8|uint64(hi[2])<<16|uint64(hi[3])<<24)<<(8*(len(s)-4))
	}
	return uint64(s[0]) | uint64(s[len(s)/2])<<(8*(len(s)/2)) | uint64(s[len(s)-1])<<(8*(len(s)-1))
}
