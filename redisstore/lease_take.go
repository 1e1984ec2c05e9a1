package redisstore

import (
	"context"

	"github.com/comporta/comporta"
)

// takeLeased is Take where limits have leases: what is at hand is taken here, and
// the store is asked for the rest in one call. When the rest denies or fails, what
// was taken here is put back.
func (s *Store) takeLeased(ctx context.Context, takes []comporta.Take, out []comporta.Taken) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(takes) == 1 {
		if s.leases.take(&takes[0], &out[0]) {
			return nil
		}
		return s.askLeased(ctx, takes, out)
	}
	here := make([]bool, len(takes))
	var rest []comporta.Take
	for i := range takes {
		here[i] = leasable(takes[i]) && s.leases.take(&takes[i], &out[i])
		if !here[i] {
			rest = append(rest, takes[i])
		}
	}
	if len(rest) == 0 {
		return nil
	}
	answers := make([]comporta.Taken, len(rest))
	err := s.askLeased(ctx, rest, answers)
	back := err != nil || !comporta.Resolve(rest, answers).Allowed
	for i := range takes {
		switch {
		case here[i] && back:
			s.leases.putBack(&takes[i], &out[i])
		case !here[i]:
			out[i], answers = answers[0], answers[1:]
		}
	}
	return err
}

// askLeased asks the store, and lets the wishes go with that which the takes led to.
func (s *Store) askLeased(ctx context.Context, takes []comporta.Take, out []comporta.Taken) error {
	var room [4]int64
	held := append(room[:0], make([]int64, len(takes))...)
	for i := range takes {
		if leasable(takes[i]) {
			held[i] = s.leases.held(&takes[i].Key)
		}
	}
	err := s.decide(ctx, takes, out)
	for i := range takes {
		if !leasable(takes[i]) {
			continue
		}
		lane, _ := s.laneOf(takes[i].Key.Identity)
		lane.flush()
		if err == nil { // what lay here is spent in the store, and not for this instance
			out[i].Remaining = min(out[i].Limit, out[i].Remaining+held[i])
		}
	}
	return err
}
