package egress

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/policy"
)

// NewLimit is an API's outbound limit: counted in store and, while that fails, as
// onError says: by this gateway alone in local, not at all, or nothing is sent.
// A nil local is that store never fails.
func NewLimit(rule *comporta.Rule, store, local comporta.Store, onError policy.OnError, log *slog.Logger) (client.Outbound, error) {
	l := &limit{onError: onError, log: log}
	var err error
	if l.shared, err = comporta.NewLimiter(store, rule.Limit()); err != nil {
		return nil, err
	}
	if local == nil {
		return l.shared, nil
	}
	l.local, err = comporta.NewLimiter(local, rule.Limit())
	return l, err
}

type limit struct {
	shared, local *comporta.Limiter
	onError       policy.OnError
	failing       atomic.Bool
	log           *slog.Logger
}

// Take asks the store, and decides by itself where that fails.
func (l *limit) Take(ctx context.Context, identity string, cost int64) (comporta.Decision, error) {
	d, err := l.shared.Take(ctx, identity, cost)
	if err == nil {
		if l.failing.CompareAndSwap(true, false) {
			l.log.Info("the store answers again")
		}
		return d, nil
	}
	if ctx.Err() != nil {
		return d, err
	}
	if l.failing.CompareAndSwap(false, true) {
		l.log.Warn("the store fails: on_error holds", "error", err)
	}
	switch l.onError {
	case policy.Local:
		return l.local.Take(ctx, identity, cost)
	case policy.Allow:
		return comporta.Decision{Allowed: true}, nil
	}
	return d, err
}
