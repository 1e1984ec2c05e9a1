package redisstore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// cuttable is a client that may be cut off, or made to wait.
type cuttable struct {
	raw
	cut  atomic.Bool
	gate atomic.Pointer[chan struct{}] // calls wait until it is closed
	late sync.WaitGroup                // calls that reach the server after their deadline
}

func (c *cuttable) Do(ctx context.Context, key string, args ...string) (any, error) {
	if gate := c.gate.Load(); gate != nil {
		select {
		case <-*gate:
		case <-ctx.Done():
			c.late.Go(func() {
				<-*gate
				_, _ = c.raw.Do(context.Background(), key, args...)
			})
			return nil, ctx.Err()
		}
	}
	if c.cut.Load() {
		return nil, errors.New("the connection is cut")
	}
	return c.raw.Do(ctx, key, args...)
}
