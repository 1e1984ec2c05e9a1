package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta"
)

const (
	// mostDebts is how many keys' debts are remembered. What others spend beyond
	// them is not charged.
	mostDebts = 65_536
	// repayWithin bounds each call that repays.
	repayWithin = time.Second
)

// debts are what quotas spent locally, by key: their windows are long, and the
// store would otherwise grant all of it once more. It is safe for concurrent use.
type debts struct {
	waiting  atomic.Bool // some are owed
	repaying atomic.Bool // in the background
	settling sync.Mutex  // held by who repays
	mu       sync.Mutex
	owed     map[comporta.Key]debt
}

// debt is what one key spent locally in one window of its quota.
type debt struct {
	rule  *comporta.Rule
	units int64
	at    comporta.Instant // when it was spent last
	end   comporta.Instant // of the window
}

// add adds to what a key owes. What it owed of a window before is forgotten.
func (d *debts) add(key comporta.Key, more debt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	had, known := d.owed[key]
	if !known && len(d.owed) >= mostDebts {
		return
	}
	if d.owed == nil {
		d.owed = make(map[comporta.Key]debt)
	}
	if known && had.end == more.end {
		more.units += had.units
	}
	d.owed[key] = more
	d.waiting.Store(true)
}

// correct changes what a key owes by what a take at that instant turned out to cost
// more, or less. What is paid already stays paid.
func (d *debts) correct(key comporta.Key, at comporta.Instant, more int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	owed, known := d.owed[key]
	if !known || at >= owed.end || at < owed.end.Add(-owed.rule.WindowAt(owed.at)) {
		return
	}
	if owed.units += more; owed.units > 0 {
		d.owed[key] = owed
	} else {
		delete(d.owed, key)
	}
}

// forget is of keys that are to be new.
func (d *debts) forget(keys []comporta.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range keys {
		delete(d.owed, key)
	}
}

// next is one of the debts, of those whose window goes on for so long that it is
// the store's, too, whose clock may be another. The others are forgotten.
func (d *debts) next(now comporta.Instant) (comporta.Key, debt, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, owed := range d.owed {
		if now.Add(comporta.MaxStep) < owed.end {
			return key, owed, true
		}
		delete(d.owed, key)
	}
	d.waiting.Store(false)
	return comporta.Key{}, debt{}, false
}

// settled takes off what was found with next and is now charged, or may be.
func (d *debts) settled(key comporta.Key, paid debt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch owed := d.owed[key]; {
	case owed.end != paid.end: // it was replaced by another window's
	case owed.units > paid.units:
		owed.units -= paid.units
		d.owed[key] = owed
	default:
		delete(d.owed, key)
	}
}

// Repay charges to the store what quotas spent locally while it could not
// answer. The engine calls it in the background after the first verdict of a
// store that answers again; call it before the program ends, since what is still
// owed then is forgotten. It is safe for concurrent use.
//
// Of each key the store is first asked whether it answers; while it does not, all
// stays for later. Then the key's units are charged without asking, as debt, in
// the quota's window that they were spent in; those whose window is over, or
// nearly, are forgotten. No debt is charged twice: where the store fails while it
// charges a key and does not know whether it did (its error is no
// [comporta.ErrUnspent]), that key's units count as charged. A client then gets at
// most its instance's share of a quota once more, where the other way it would
// lose what it never used. (One kind of unit may count twice: that of a request
// which was under way when the store failed. If the store had charged it after
// all, it stands there and is owed, too.) The error is that of the store; what it
// did not come to stays for later.
func (e *Engine) Repay(ctx context.Context) error {
	d := e.fallback.debts
	d.settling.Lock()
	defer d.settling.Unlock()
	out := make([]comporta.Taken, 1)
	for {
		key, owed, any := d.next(e.now())
		if !any {
			return nil
		}
		err := within(ctx, func(ctx context.Context) error {
			return e.store.Take(ctx, []comporta.Take{{Key: key, Rule: owed.rule}}, out)
		})
		if err != nil {
			return fmt.Errorf("policy: the store does not answer yet, so what quotas spent without it is still to be charged: %w", err)
		}
		err = within(ctx, func(ctx context.Context) error {
			taken := comporta.Receipt{At: owed.at, Cost: 1}
			return e.store.Settle(ctx, []comporta.Settlement{{Key: key, Rule: owed.rule, Taken: taken, Actual: 1 + owed.units}}, out)
		})
		if !errors.Is(err, comporta.ErrUnspent) {
			d.settled(key, owed)
		}
		if err != nil {
			return fmt.Errorf("policy: the store failed while it charged what a quota had spent without it: %w", err)
		}
	}
}

func within(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, repayWithin)
	defer cancel()
	return call(ctx)
}

// repaySoon repays in the background, unless somebody does.
func (e *Engine) repaySoon() {
	d := e.fallback.debts
	if !d.repaying.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer d.repaying.Store(false)
		_ = e.Repay(context.Background()) // what is left stays for the next verdict
	}()
}
