package comporta

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// A Key says whose budget is asked: of which limit, of which client.
type Key struct {
	// Limit is the limit's name.
	Limit string
	// Identity is the client, as it is to be stored: never a secret in the clear.
	Identity string
}

// Phase is the key's own 64 bits from which a staggered limit takes the offset
// of its windows: the first 8 bytes, big-endian, of SHA-256(limit name, 0x00, identity).
func (k Key) Phase() uint64 {
	buf := make([]byte, 0, 128)
	buf = append(buf, k.Limit...)
	buf = append(buf, 0)
	buf = append(buf, k.Identity...)
	sum := sha256.Sum256(buf)
	return binary.BigEndian.Uint64(sum[:8])
}

// A Take asks one limit for the units of one request.
type Take struct {
	Key  Key
	Rule *Rule
	// Cost is in units; 0 only looks (a peek).
	Cost int64
	// Shadow: the limit refuses nothing and delays nothing. Where it would deny it
	// is not charged and its decision says so.
	Shadow bool
}

// A Settlement replaces the cost of an allowed take by its actual cost.
type Settlement struct {
	Key    Key
	Rule   *Rule
	Taken  Receipt
	Actual int64
}

// A Store keeps states and runs the step on them. It is safe for concurrent
// use. It has a clock of its own, reads it once a call, and holds no key for
// less long than until it is full again.
//
// The obligations of a store are what package storetest checks.
type Store interface {
	// Take asks all the limits that apply to a request in one step and fills in a
	// decision for each: all are charged or, when an enforced one denies, none is
	// (limits that charge attempts aside). A denial is a value. An error means that
	// the store does not know whether it spent, unless it is ErrUnspent; ErrSameKey
	// and a cost out of range are errors that change nothing. len(out) is at least
	// len(takes).
	Take(ctx context.Context, takes []Take, out []Taken) error
	// Settle settles takes, each once; the decisions are those of peeks afterwards.
	Settle(ctx context.Context, settlements []Settlement, out []Taken) error
}

// A Taker is a store that also has a door for a single take that nobody will
// settle. All of it passes in registers: nothing need be allocated or copied.
// [Limiter] uses it where there is one.
type Taker interface {
	TakeOne(ctx context.Context, key Key, rule *Rule, cost int64) (Decision, error)
}

// A Resetter is a store that can forget keys.
type Resetter interface {
	// Reset makes keys new: their budgets are full. One that the store does not know
	// is new already. Takes from before may still be settled: that gives nothing back
	// past a full budget. An error means that some may be as they were; to reset them
	// again does no harm.
	Reset(ctx context.Context, keys []Key) error
}

// ErrSameKey is the error of a step that asks the same key twice.
var ErrSameKey = errors.New("comporta: the same key twice in one step")

// ErrUnspent is what errors of stores are (by errors.Is) that are sure to have
// changed nothing, as when a server was not asked or refused.
var ErrUnspent = errors.New("comporta: nothing was spent")

// CheckTakes is the error of a step that no store may run: the same key twice,
// a cost out of range.
func CheckTakes(takes []Take) error {
	for i := range takes {
		if err := CheckCost(takes[i].Cost); err != nil {
			return fmt.Errorf("comporta: limit %q: %w", takes[i].Key.Limit, err)
		}
		for j := range i {
			if takes[i].Key == takes[j].Key {
				return fmt.Errorf("%w: limit %q", ErrSameKey, takes[i].Key.Limit)
			}
		}
	}
	return nil
}

// CheckSettlements is the error of settlements that no store may run.
func CheckSettlements(settlements []Settlement) error {
	for i := range settlements {
		s := &settlements[i]
		if err := CheckCost(s.Actual); err != nil {
			return fmt.Errorf("comporta: settling limit %q: %w", s.Key.Limit, err)
		}
		if s.Taken.Cost < 1 {
			return fmt.Errorf("comporta: settling limit %q: the receipt is of no take", s.Key.Limit)
		}
	}
	return nil
}
