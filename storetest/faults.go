package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/comporta/comporta"
)

// A Fault is how a call fails.
type Fault uint8

const (
	// None: the call goes through.
	None Fault = iota
	// Lost: the call fails and was never applied, as when no connection was made.
	Lost
	// LostReply: the call was applied, and fails all the same, as when the answer
	// did not come back.
	LostReply
	// Unspent: the call fails, was never applied, and says so.
	Unspent
)

// ErrFault is the error of every injected fault; that of Unspent is a
// [comporta.ErrUnspent], too.
var ErrFault = errors.New("storetest: injected fault")

var errNoReset = errors.New("storetest: the inner store cannot reset keys")

var errUnspent = fmt.Errorf("%w: %w", ErrFault, comporta.ErrUnspent)

// Faults is a store that fails as its script says. It is safe for concurrent
// use when its fields are not changed any more.
type Faults struct {
	// Store answers what does not fail.
	Store comporta.Store
	// Script says how the n-th call fails, counted from 0 over Take, TakeOne, Settle
	// and Reset. It is called under a lock. Nil never fails.
	Script func(n int) Fault

	mu       sync.Mutex
	calls    int
	injected [Unspent + 1]int
}

var (
	_ comporta.Store    = (*Faults)(nil)
	_ comporta.Taker    = (*Faults)(nil)
	_ comporta.Resetter = (*Faults)(nil)
)

// Sequence is a script that is written out; what comes after it goes through.
func Sequence(faults ...Fault) func(int) Fault {
	return func(n int) Fault {
		if n < len(faults) {
			return faults[n]
		}
		return None
	}
}

// Always is a script in which every call fails in one way.
func Always(fault Fault) func(int) Fault { return func(int) Fault { return fault } }

// Random is a script that fails about one call in n, in both ways alike, the
// same each time for one seed. It fits one store, not several at once.
func Random(seed uint64, n int) func(int) Fault {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	return func(int) Fault {
		if r.IntN(n) > 0 {
			return None
		}
		return Lost + Fault(r.IntN(2))
	}
}

// Take is [comporta.Store]'s.
func (f *Faults) Take(ctx context.Context, takes []comporta.Take, out []comporta.Taken) error {
	return f.call(out, func(out []comporta.Taken) error { return f.Store.Take(ctx, takes, out) })
}

// Settle is [comporta.Store]'s.
func (f *Faults) Settle(ctx context.Context, settlements []comporta.Settlement, out []comporta.Taken) error {
	return f.call(out, func(out []comporta.Taken) error { return f.Store.Settle(ctx, settlements, out) })
}

// TakeOne is [comporta.Taker]'s. It goes through the inner store's own, where it
// has one, and through Take where it has not.
func (f *Faults) TakeOne(ctx context.Context, key comporta.Key, rule *comporta.Rule, cost int64) (comporta.Decision, error) {
	var out [1]comporta.Taken
	err := f.call(out[:], func(out []comporta.Taken) error {
		if one, ok := f.Store.(comporta.Taker); ok {
			var err error
			out[0].Decision, err = one.TakeOne(ctx, key, rule, cost)
			return err
		}
		return f.Store.Take(ctx, []comporta.Take{{Key: key, Rule: rule, Cost: cost}}, out)
	})
	return out[0].Decision, err
}

// Reset is [comporta.Resetter]'s; it is an error where the inner store is none.
func (f *Faults) Reset(ctx context.Context, keys []comporta.Key) error {
	return f.call(nil, func([]comporta.Taken) error {
		store, ok := f.Store.(comporta.Resetter)
		if !ok {
			return errNoReset
		}
		return store.Reset(ctx, keys)
	})
}

// call runs one call as the script says. A lost reply leaves the caller's
// decisions as they were.
func (f *Faults) call(out []comporta.Taken, through func([]comporta.Taken) error) error {
	switch f.next() {
	case Lost:
		return ErrFault
	case LostReply:
		if err := through(make([]comporta.Taken, len(out))); err != nil {
			return err
		}
		return ErrFault
	case Unspent:
		return errUnspent
	default:
		return through(out)
	}
}

func (f *Faults) next() Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := None
	if f.Script != nil {
		fault = f.Script(f.calls)
	}
	f.calls++
	f.injected[fault]++
	return fault
}

// Calls is how many calls failed in a way, or with None went through.
func (f *Faults) Calls(fault Fault) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.injected[fault]
}
