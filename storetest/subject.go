package storetest

import (
	"slices"
	"time"

	"github.com/comporta/comporta"
	"pgregory.net/rapid"
)

// A subject is one key under one rule at an instant, in whatever state: what a
// law is tried on. Copies are apart.
type subject struct {
	rule *comporta.Rule
	now  comporta.Instant
	kept kept
	key  comporta.Key
	// receipts are of takes that were not settled yet.
	receipts []comporta.Receipt
	faults   int
}

// newSubject draws a subject that has been through much.
func newSubject(t *rapid.T, limit comporta.Limit) *subject {
	s := &subject{rule: compile(t, limit), key: comporta.Key{Limit: "law", Identity: "subject"}}
	s.now = rapid.SampledFrom(bases).Draw(t, "start")
	for range rapid.IntRange(0, 20).Draw(t, "history") {
		s.live(t, true)
	}
	return s
}

// live lets one thing happen: a wait, a take, or, where settling is, a settle.
func (s *subject) live(t *rapid.T, settling bool) {
	switch rapid.SampledFrom([]string{"take", "take", "wait", "settle"}).Draw(t, "act") {
	case "take":
		s.take(cost(t, s.rule.Full()))
	case "settle":
		if len(s.receipts) > 0 && settling {
			i := rapid.IntRange(0, len(s.receipts)-1).Draw(t, "which")
			r := s.receipts[i]
			s.receipts = slices.Delete(s.receipts, i, i+1)
			s.settle(r, min(max(0, r.Cost+rapid.Int64Range(-3, 3).Draw(t, "more")), comporta.MaxCost))
		}
	case "wait":
		s.pass(t)
	}
}

// pass lets some time pass.
func (s *subject) pass(t *rapid.T) {
	look := s.copy().take(0)
	d := rapid.SampledFrom([]time.Duration{
		time.Microsecond, s.rule.FillTime() / 5, s.rule.FillTime() / 2, time.Second,
		look.ResetAfter, look.FullAfter / 2, look.FullAfter - time.Microsecond,
	}).Draw(t, "wait")
	s.now = s.now.Add(max(0, d))
}

func (s *subject) step(f func(*comporta.Cell)) {
	cell := s.cell()
	f(&cell)
	if cell.Fault {
		s.faults++
	}
	if cell.Changed {
		s.kept.apply(&cell)
	}
}

func (s *subject) cell() comporta.Cell {
	cell := s.kept.cell()
	cell.State.Phase = s.key.Phase()
	return cell
}

func (s *subject) take(cost int64) (d comporta.Taken) {
	s.step(func(c *comporta.Cell) { s.rule.Advance(c, s.now, cost, &d) })
	if d.Receipt.Cost > 0 {
		s.receipts = append(s.receipts, d.Receipt)
	}
	return d
}

func (s *subject) settle(taken comporta.Receipt, actual int64) comporta.Taken {
	s.step(func(c *comporta.Cell) { s.rule.Settle(c, s.now, taken, actual) })
	return s.take(0)
}

func (s *subject) copy() *subject {
	o := *s
	o.receipts = slices.Clone(s.receipts)
	return &o // a kept log is never changed in place
}

// after is a copy, d later.
func (s *subject) after(d time.Duration) *subject {
	o := s.copy()
	o.now = o.now.Add(d)
	return o
}

// same says whether two subjects are in the same state.
func (s *subject) same(o *subject) bool {
	return s.kept.state == o.kept.state && slices.Equal(s.kept.entries, o.kept.entries)
}

// full says whether the subject is a key never seen.
func (s *subject) full() bool { return s.kept.state.Zero() && len(s.kept.entries) == 0 }

// counts says whether the rule counts at all.
func (s *subject) counts() bool { return !s.rule.Limit().Unlimited && s.rule.Full() > 0 }
