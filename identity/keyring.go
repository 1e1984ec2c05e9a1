package identity

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxID is the most bytes of a key's id, and of its plan's name.
const MaxID = 128

// digest is a SHA-256.
type digest = [sha256.Size]byte

// A Key is what is known of an API key: not the key itself.
type Key struct {
	// ID is what is counted: 1 to MaxID bytes of printable Unicode, with no blank at
	// either end. Several keys may share one, so that a key can be changed for
	// another without a fresh budget. A colon in it is a letter like others.
	ID string
	// Plan is the plan of that id; "" is none.
	Plan string
	// Sum is the SHA-256 of the key.
	Sum [sha256.Size]byte
	// Expires is the first instant at which the key proves nothing; zero is never.
	Expires time.Time
}

// A Keyring knows keys by their SHA-256. It is safe for concurrent use.
type Keyring interface {
	// Find is the key with that sum and whether there is one. It returns expired keys
	// too. An error that is a *RequestError refuses the request.
	Find(ctx context.Context, sum [sha256.Size]byte) (Key, bool, error)
	// Known says that Find would answer at once.
	Known(sum [sha256.Size]byte) bool
}

// Keys is a [Keyring] in memory. It is immutable.
type Keys struct {
	keys  []Key             // by Sum
	first map[uint64]int    // of the keys whose sums begin so
	plans map[string]string // by id
}

var noKeys = new(Keys)

// NewKeys makes a table of keys. Keys may share an id if they have the same plan,
// since an id has one budget; the same key twice is an error. Errors name ids, never
// keys or their sums.
func NewKeys(keys []Key) (*Keys, error) {
	k := &Keys{
		keys:  slices.Clone(keys),
		first: make(map[uint64]int, len(keys)),
		plans: make(map[string]string, len(keys)),
	}
	for _, one := range keys {
		if err := one.check(); err != nil {
			return nil, err
		}
		if plan, shared := k.plans[one.ID]; shared && plan != one.Plan {
			return nil, fmt.Errorf("the keys of %s have two plans, %s and %s: keys that share an id share its budget and its plan; give them one plan, or one of them another id",
				quote(one.ID), planText(plan), planText(one.Plan))
		}
		k.plans[one.ID] = one.Plan
	}
	slices.SortStableFunc(k.keys, func(a, b Key) int { return bytes.Compare(a.Sum[:], b.Sum[:]) })
	for i, one := range k.keys {
		if i > 0 && k.keys[i-1].Sum == one.Sum {
			return nil, sameKey(k.keys[i-1].ID, one.ID)
		}
		if _, there := k.first[start(one.Sum)]; !there {
			k.first[start(one.Sum)] = i
		}
	}
	return k, nil
}

func sameKey(a, b string) error {
	if a == b {
		return fmt.Errorf("a key of %s is listed twice: leave one out", quote(a))
	}
	return fmt.Errorf("%s and %s have the same key: nobody could tell them apart; make a new key for one of them", quote(a), quote(b))
}

// Find looks a key up in constant time: the beginning of the sum leads to the keys
// that have it, of which there is one at most unless somebody looked for them, and
// those are compared to the end. It never fails.
func (k *Keys) Find(_ context.Context, sum digest) (Key, bool, error) {
	at, there := k.first[start(sum)]
	if !there {
		return Key{}, false, nil
	}
	found := -1
	for i := at; i < len(k.keys) && start(k.keys[i].Sum) == start(sum); i++ {
		if subtle.ConstantTimeCompare(k.keys[i].Sum[:], sum[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Key{}, false, nil
	}
	return k.keys[found], true, nil
}

// Known is true: a table answers at once.
func (k *Keys) Known(digest) bool { return true }

// Len is how many keys there are.
func (k *Keys) Len() int { return len(k.keys) }

func start(sum digest) uint64 { return binary.BigEndian.Uint64(sum[:]) }

// check says what is wrong with a key.
func (k *Key) check() error {
	if err := checkText(k.ID); err != nil {
		return fmt.Errorf("the id of an API key %w", err)
	}
	if k.Plan != "" {
		if err := checkText(k.Plan); err != nil {
			return fmt.Errorf("the plan of %s %w", quote(k.ID), err)
		}
	}
	if k.Sum == (digest{}) || k.Sum == sha256.Sum256(nil) {
		return fmt.Errorf("%s has no key: give it one, or its SHA-256", quote(k.ID))
	}
	return nil
}

// checkText says how an id or a plan's name is not as it must be. It does not repeat it.
func checkText(text string) error {
	switch {
	case text == "":
		return errors.New("is empty: name what is counted, as acme")
	case len(text) > MaxID:
		return fmt.Errorf("has %d bytes: at most %d", len(text), MaxID)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }):
		return errors.New("has characters that cannot be printed: use letters, digits and signs, as acme-2")
	case text != strings.TrimSpace(text):
		return errors.New("has a blank at its beginning or end: leave it out")
	}
	return nil
}

func quote(id string) string { return strconv.Quote(id) }

func planText(plan string) string { return cmp.Or(plan, "none") }
