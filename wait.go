package comporta

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrWait is what an error of Wait is when the units cannot be had in time:
// nothing was spent, and the text says when they could be.
var ErrWait = errors.New("comporta: not allowed in time")

// Wait blocks until the units are spent and their delay is over, or the context
// ends. Where the wait would pass the context's deadline, or would never end, it
// returns at once with an error that is ErrWait. What a wait that ends early had
// reserved is given back where nothing later depends on it.
//
// Waiters of one key are not in line: who asks first after the budget frees, wins.
func (l *Limiter) Wait(ctx context.Context, identity string, cost int64) error {
	taken := make([]Taken, len(l.rules))
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		d, err := l.TakeAll(ctx, identity, cost, taken)
		if err != nil {
			return err
		}
		if d.Allowed {
			if err := pause(ctx, d.Delay); err != nil {
				_, undo := l.Settle(context.WithoutCancel(ctx), identity, taken, 0)
				return errors.Join(err, undo)
			}
			return nil
		}
		if d.RetryAfter == Never {
			return fmt.Errorf("%w, nor ever: a cost of %d is over what a full budget holds", ErrWait, cost)
		}
		if err := pause(ctx, d.RetryAfter); err != nil {
			return err
		}
	}
}

// pause waits for d, unless the context ends first or is known to.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left < d {
			return fmt.Errorf("%w: it takes %v, and %v are left to the deadline", ErrWait, d, left.Round(time.Millisecond))
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
