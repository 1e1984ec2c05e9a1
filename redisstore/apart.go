package redisstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/comporta/comporta"
)

// spans says whether takes are of more than one slot.
func spans(takes []comporta.Take) bool {
	for i := 1; i < len(takes); i++ {
		if takes[i].Key.Identity != takes[0].Key.Identity && slotOf(takes[i].Key.Identity) != slotOf(takes[0].Key.Identity) {
			return true
		}
	}
	return false
}

// takeApart takes slot by slot. When a slot denies, what the slots before it
// spent is given back, and those after it are asked as takes that are denied
// already: that charges attempts and nothing else. When a slot fails, what those
// before it spent is given back, too, with nobody waiting for it. All slots have
// one deadline.
func (s *Store) takeApart(ctx context.Context, takes []comporta.Take, out []comporta.Taken) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	denied := false
	for done, group := range bySlot(takes) {
		part := make([]comporta.Take, len(group))
		for i, at := range group {
			part[i] = takes[at]
		}
		answers := make([]comporta.Taken, len(group))
		if err := s.take(ctx, part, answers, denied); err != nil {
			if done == 0 {
				return err
			}
			if !denied {
				takes, out := slices.Clone(takes), slices.Clone(out)
				go func() { _ = s.giveBack(context.Background(), takes, out, done) }()
			}
			// What this slot is sure of does not hold of those before it.
			return fmt.Errorf("redisstore: one slot of several failed: %v", err)
		}
		for i, at := range group {
			out[at] = answers[i]
		}
		if !denied && !comporta.Resolve(part, answers).Allowed {
			denied = true
			if err := s.giveBack(ctx, takes, out, done); err != nil {
				return err
			}
		}
	}
	return nil
}

// bySlot are the indexes of takes, by slot, in order of the first of each.
func bySlot(takes []comporta.Take) (groups [][]int) {
	at := map[uint16]int{}
	for i := range takes {
		slot := slotOf(takes[i].Key.Identity)
		g, known := at[slot]
		if !known {
			g = len(groups)
			at[slot] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// giveBack settles what the first slots of a denied request have spent to nothing.
func (s *Store) giveBack(ctx context.Context, takes []comporta.Take, out []comporta.Taken, slots int) error {
	for _, group := range bySlot(takes)[:slots] {
		for _, at := range group {
			t := &takes[at]
			if out[at].Delay = 0; out[at].Receipt.Cost == 0 || s.numbersOf(t.Rule).attempts && !t.Shadow {
				continue
			}
			err := s.settle(ctx, &comporta.Settlement{Key: t.Key, Rule: t.Rule, Taken: out[at].Receipt}, &out[at])
			if err != nil {
				return err
			}
		}
	}
	return nil
}
