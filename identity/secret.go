package identity

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"sync"
)

// MinSecret is the least number of bytes of a secret.
const MinSecret = 16

// A Secret is the key under which values that clients sent are hashed: who has
// the store but not the secret cannot try values out. All sources of a policy
// share one.
//
// The zero Secret is ready: one that was not set when it is first used makes a
// random key of its own, which ends with the process. It is safe for concurrent
// use.
type Secret struct {
	once   sync.Once // settles the key
	key    []byte
	states sync.Pool // *hashing
}

// hashing is what one HMAC needs, kept for the next.
type hashing struct {
	mac hash.Hash
	in  []byte
	sum [sha256.Size]byte
}

// NewSecret is a secret with a key of at least 16 bytes, of which it keeps a copy.
func NewSecret(key []byte) (*Secret, error) {
	s := new(Secret)
	return s, s.Set(key)
}

// Set gives a zero Secret its key, once and before its first use: sources may
// be built before the key is read.
func (s *Secret) Set(key []byte) error {
	if len(key) < MinSecret {
		return fmt.Errorf("a secret of %d bytes is too short: at least %d, better 32 random ones", len(key), MinSecret)
	}
	set := false
	s.once.Do(func() {
		s.key, set = append([]byte(nil), key...), true
	})
	if !set {
		return errors.New("the secret was set or used already: set it once, before the first request")
	}
	return nil
}

func (s *Secret) get() *hashing {
	s.once.Do(func() {
		s.key = make([]byte, sha256.Size)
		rand.Read(s.key) // never fails: it ends the program where there is no randomness
	})
	if h, ok := s.states.Get().(*hashing); ok {
		return h
	}
	return &hashing{mac: hmac.New(sha256.New, s.key)}
}

// ID is an identity of a kind of its own: the prefix, which names the kind and
// ends with a colon, followed by the hash of prefix and value. It is for sources of
// other packages; ours hash in the same way.
func (s *Secret) ID(prefix, value string) string { return s.identity(prefix, value) }

// identity is prefix followed by the hash of the value under name and prefix:
// HMAC-SHA-256 over both with their lengths, cut to 128 bits. It allocates the
// text alone.
func (s *Secret) identity(prefix, value string) string {
	h := s.get()
	defer s.states.Put(h)
	h.in = binary.AppendUvarint(h.in[:0], uint64(len(prefix)))
	h.in = append(h.in, prefix...)
	h.in = append(h.in, value...)
	h.mac.Reset()
	h.mac.Write(h.in)
	sum := h.mac.Sum(h.sum[:0])
	h.in = append(h.in[:0], prefix...)
	h.in = base64.RawURLEncoding.AppendEncode(h.in, sum[:16])
	return string(h.in)
}
