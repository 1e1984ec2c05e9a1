package comporta

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A Limiter asks a store about one identity under one limit or several, all or
// nothing: the five-line door. It is safe for concurrent use. With one limit and
// a store that has a door for single takes ([Taker]), such as memstore, a take
// allocates nothing.
type Limiter struct {
	store   Store
	one     Taker // the store's door for single takes; nil for several limits
	names   []string
	rules   []*Rule
	scratch sync.Pool // *batch, for several limits
}

// batch is what a step of several limits is asked with and answered in.
type batch struct {
	takes     []Take
	decisions []Taken
}

// NewLimiter compiles the limits. An unnamed limit is named "default"; two of
// one name are an error. The store may be shared with other limiters: limits of
// one name share their keys.
func NewLimiter(store Store, limits ...Limit) (*Limiter, error) {
	if store == nil {
		return nil, errors.New("comporta: a limiter needs a store")
	}
	if len(limits) == 0 {
		return nil, errors.New("comporta: a limiter needs at least one limit")
	}
	l := &Limiter{store: store}
	for _, limit := range limits {
		if limit.Name == "" {
			limit.Name = "default"
		}
		for _, name := range l.names {
			if name == limit.Name {
				return nil, fmt.Errorf("comporta: two limits are named %q: give each a name of its own", name)
			}
		}
		rule, err := limit.Compile()
		if err != nil {
			return nil, fmt.Errorf("comporta: limit %q: %w", limit.Name, err)
		}
		l.names, l.rules = append(l.names, limit.Name), append(l.rules, rule)
	}
	if len(l.rules) == 1 {
		l.one, _ = store.(Taker)
	}
	l.scratch.New = func() any {
		return &batch{make([]Take, len(l.rules)), make([]Taken, len(l.rules))}
	}
	return l, nil
}

// Rules are the limiter's limits, compiled, in order.
func (l *Limiter) Rules() []*Rule { return append([]*Rule(nil), l.rules...) }

// Take asks all the limits for the units of one request of identity and spends
// them when all allow. The decision is that of the limit that binds most, with
// Allowed, RetryAfter and Delay of the whole. A denial is a value; an error means
// that it is not known whether the units were spent.
func (l *Limiter) Take(ctx context.Context, identity string, cost int64) (Decision, error) {
	if l.one != nil {
		return l.one.TakeOne(ctx, Key{l.names[0], identity}, l.rules[0], cost)
	}
	b := l.scratch.Get().(*batch)
	defer l.scratch.Put(b)
	return l.take(ctx, identity, cost, b.takes, b.decisions)
}

// Peek looks without spending.
func (l *Limiter) Peek(ctx context.Context, identity string) (Decision, error) {
	return l.Take(ctx, identity, 0)
}

// TakeAll is Take that also fills in the decision of each limit, in order, in
// out, whose length is the number of limits. Settle wants them.
func (l *Limiter) TakeAll(ctx context.Context, identity string, cost int64, out []Taken) (Decision, error) {
	if len(out) != len(l.rules) {
		return Decision{}, fmt.Errorf("comporta: room for %d decisions of %d limits", len(out), len(l.rules))
	}
	b := l.scratch.Get().(*batch)
	defer l.scratch.Put(b)
	return l.take(ctx, identity, cost, b.takes, out)
}

func (l *Limiter) take(ctx context.Context, identity string, cost int64, takes []Take, out []Taken) (Decision, error) {
	for i, rule := range l.rules {
		takes[i] = Take{Key: Key{l.names[i], identity}, Rule: rule, Cost: cost}
	}
	if err := l.store.Take(ctx, takes, out); err != nil {
		return Decision{}, err
	}
	o := Resolve(takes, out)
	strictest := 0
	for i := range takes {
		if Stricter(out[i].Decision, out[strictest].Decision) {
			strictest = i
		}
	}
	d := out[strictest].Decision
	d.Allowed, d.RetryAfter, d.Delay = o.Allowed, o.RetryAfter, o.Delay
	return d, nil
}

// Settle replaces the cost of an allowed take by what the request really cost,
// once. Taken is what TakeAll filled in (or the one decision of a limiter of one
// limit); the answer is that of a peek afterwards.
func (l *Limiter) Settle(ctx context.Context, identity string, taken []Taken, actual int64) (Decision, error) {
	if len(taken) != len(l.rules) {
		return Decision{}, fmt.Errorf("comporta: settling takes the decisions of all %d limits, not %d", len(l.rules), len(taken))
	}
	settlements := make([]Settlement, 0, len(taken))
	for i, d := range taken {
		if d.Receipt.Cost > 0 {
			settlements = append(settlements, Settlement{Key{l.names[i], identity}, l.rules[i], d.Receipt, actual})
		}
	}
	if len(settlements) > 0 {
		if err := l.store.Settle(ctx, settlements, make([]Taken, len(settlements))); err != nil {
			return Decision{}, err
		}
	}
	return l.Peek(ctx, identity)
}
