package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// apiKeyPrefix begins every such identity; no other kind begins so.
const apiKeyPrefix = "api_key:"

// APIKey tells clients apart by the API keys that an operator gave them. It is a
// [Prover] and a [Named].
//
// What a client may forge: nothing. Only a key that is in the keyring is an
// identity, and that identity is the id that the operator gave the key, stored in
// the clear; the key itself is neither kept nor shown. A key that is unknown or
// expired, or one of several that a request shows, proves nothing: the request counts for
// whatever else it shows, such as its address, so that random keys open no budgets.
//
// It knows no key before [APIKey.Use] and is safe for concurrent use.
type APIKey struct {
	places Places
	ring   atomic.Pointer[Keyring] // nil before the first
	now    func() time.Time
}

// unproved is why a key proves nothing: an ErrUnproved that repeats nothing of it.
type unproved string

func (u unproved) Error() string { return ErrUnproved.Error() + ": " + string(u) }

func (u unproved) Unwrap() error { return ErrUnproved }

const (
	errSeveralKeys = unproved("the request shows several")
	errKeyForm     = unproved("it is no key by its form")
	errUnknownKey  = unproved("the key is unknown")
	errExpiredKey  = unproved("the key has expired")
)

// NewAPIKey is a source by the keys at these places.
func NewAPIKey(p Places) (*APIKey, error) {
	p, err := p.checked()
	if err != nil {
		return nil, err
	}
	return &APIKey{places: p, now: wall}, nil
}

// Clock sets the clock by which keys expire, before the first request; unless set
// it is the system's.
func (a *APIKey) Clock(now func() time.Time) { a.now = now }

// Use makes a keyring the one that keys are looked up in: the first, or in place of
// the one before, at any time. Each request is answered by one of them.
func (a *APIKey) Use(ring Keyring) { a.ring.Store(&ring) }

func (a *APIKey) keyring() Keyring {
	if ring := a.ring.Load(); ring != nil {
		return *ring
	}
	return noKeys
}

// Identity is "api_key:" and the key's id.
func (a *APIKey) Identity(r *Request) (string, bool) {
	who, shown, err := a.Prove(context.Background(), r)
	return who.ID, shown && err == nil
}

// Stage is Credential where somebody else must be asked for the key.
func (a *APIKey) Stage(r *Request) Stage {
	ring := a.keyring()
	if _, table := ring.(*Keys); table {
		return Look
	}
	key, shown, err := a.places.find(r)
	if !shown || err != nil || ring.Known(sumOf(key)) {
		return Look
	}
	return Credential
}

// Prove is the client whose key the request shows. With a table in memory it costs
// one SHA-256 and allocates the identity alone.
func (a *APIKey) Prove(ctx context.Context, r *Request) (Who, bool, error) {
	shown, is, err := a.places.find(r)
	if !is || err != nil {
		return Who{}, false, err
	}
	key, known, err := a.keyring().Find(ctx, sumOf(shown))
	switch {
	case err != nil:
		return Who{}, false, err
	case !known:
		return Who{}, false, errUnknownKey
	case !key.Expires.IsZero() && !a.now().Before(key.Expires):
		return Who{}, false, errExpiredKey
	}
	return Who{ID: apiKeyPrefix + key.ID, Plan: key.Plan}, true, nil
}

// For is the client with that id, whether there is a key for it or not. Its plan is
// there where the keys are a table in memory that has one.
func (a *APIKey) For(id string) (Who, error) {
	if err := checkText(id); err != nil {
		return Who{}, fmt.Errorf("the id of an API key %w", err)
	}
	who := Who{ID: apiKeyPrefix + id}
	if keys, table := a.keyring().(*Keys); table {
		who.Plan = keys.plans[id]
	}
	return who, nil
}

// TellsPlans says whether plans are known from keys that are shown alone, and not by
// id from a table in memory.
func (a *APIKey) TellsPlans() bool {
	_, table := a.keyring().(*Keys)
	return !table
}

func (a *APIKey) String() string { return "api_key" }

// HeaderName is the header that holds the key alone, in canonical form; "" where
// none does.
func (a *APIKey) HeaderName() string { return a.places.Header }

// SumKey is the SHA-256 of a key, by which it is looked up. The error says why no
// request could show such a key, and does not repeat it.
func SumKey(key string) ([sha256.Size]byte, error) {
	switch {
	case key == "":
		return digest{}, errors.New("the key is empty")
	case !keyForm(key):
		return digest{}, fmt.Errorf("a key has at most %d bytes and neither blanks nor control characters", MaxKey)
	}
	return sumOf(key), nil
}

// sumOf allocates nothing for a key of at most MaxKey bytes.
func sumOf(key string) digest {
	var room [MaxKey]byte
	return sha256.Sum256(append(room[:0], key...))
}
