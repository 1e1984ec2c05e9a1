package main

import (
	"math/rand/v2"
	"strings"
)

// keyWidth is the length of every key, as long as an API key's public part.
const keyWidth = 16

// A sequence is the keys of many requests in a row, as one string: nothing for
// the collector to scan, and no key is the very string that a map has stored,
// so that no comparison ends early at equal pointers.
type sequence string

// sequenceLength is how many requests a sequence holds before it begins again.
const sequenceLength = 1 << 21

func (s sequence) len() int { return len(s) / keyWidth }

// at is the key of the i-th request. It allocates nothing.
func (s sequence) at(i int) string { return string(s[i*keyWidth : (i+1)*keyWidth]) }

// keyName is the i-th client's key, a string of its own as from a request's header.
func keyName(i int) string { return string(appendKey(nil, i)) }

// appendKey writes the i-th client's key: 16 hexadecimal digits, none of them in
// order (the finaliser of splitmix64 is a bijection).
func appendKey(b []byte, i int) []byte {
	x := uint64(i) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[x>>shift&15])
	}
	return b
}

// newSequence draws requests of so many clients, the same on every run: each
// client as often as any other, or by Zipf's law with exponent 1.01, where which
// clients are the busy ones has nothing to do with the order of their arrival.
func newSequence(keys int, zipf bool, length int) sequence {
	random := rand.New(rand.NewPCG(1, 2))
	client := func() int { return random.IntN(keys) }
	if zipf {
		rank := rand.NewZipf(random, 1.01, 1, uint64(keys-1))
		clients := random.Perm(keys)
		client = func() int { return clients[rank.Uint64()] }
	}
	var b strings.Builder
	b.Grow(length * keyWidth)
	buf := make([]byte, 0, keyWidth)
	for range length {
		b.Write(appendKey(buf, client()))
	}
	return sequence(b.String())
}
