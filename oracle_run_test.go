package comporta_test

import (
	"fmt"
	"testing"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/storetest"
	"pgregory.net/rapid"
)

// TestOracle holds the steps against rational arithmetic written apart, over
// random takes, settles, clock steps and changes of the numbers.
func TestOracle(t *testing.T) { rapid.Check(t, againstOracle) }

// againstOracle leaves out one question, to which a state has no answer: whether
// a place in a queue that was empty again, and so forgotten, is the place of the
// same instant in the queue that a clock stepping back made afterwards.
func againstOracle(t *rapid.T) {
	plain := func(l comporta.Limit) bool { return !l.Unlimited && l.Calendar == nil }
	limit := storetest.Limits().Filter(plain).Draw(t, "limit")
	clock := &storetest.Clock{}
	store := &storetest.Model{Now: clock.Now}
	key := comporta.Key{Limit: "held", Identity: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "identity"))}
	o := &oracle{key: key}
	o.forget()
	rule := compile(t, limit)
	clock.Set(comporta.Instant(rapid.SampledFrom([]int64{0, 10_000_000, 1_777_777_777_777_777}).Draw(t, "start")))

	type take struct {
		ticket  ticket
		receipt comporta.Receipt
	}
	var takes []take
	var last answer
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		switch rapid.SampledFrom([]string{"take", "take", "take", "wait", "wait", "settle", "step back", "change"}).Draw(t, "act") {
		case "wait":
			w := limit.Window.Microseconds()
			d := rapid.SampledFrom([]int64{
				1, w, w / 3, w - 1, 2*w - 1, 1_000_000,
				last.ResetAfter, last.ResetAfter - 1, last.FullAfter, last.FullAfter - 1, last.RetryAfter, last.RetryAfter - 1,
			}).Draw(t, "µs")
			clock.Set(clock.Instant() + comporta.Instant(max(0, d)))
		case "step back":
			d := rapid.SampledFrom([]int64{1, 10_000_000, 10_000_001, 3_600_000_000}).Draw(t, "back µs")
			clock.Set(max(0, clock.Instant()-comporta.Instant(d)))
		case "change":
			if rapid.IntRange(0, 3).Draw(t, "really") == 3 {
				limit = storetest.Changed(limit).Filter(plain).Draw(t, "changed")
				rule = compile(t, limit)
			}
		case "take":
			full := rule.Full()
			c := max(0, rapid.SampledFrom([]int64{1, 0, 2, 3, full, full - 1, full + 1, full/2 + 1, comporta.MaxCost}).Draw(t, "cost"))
			want, taken := o.take(limit, int64(clock.Instant()), c)
			var out [1]comporta.Taken
			if err := store.Take(t.Context(), []comporta.Take{{Key: key, Rule: rule, Cost: c}}, out[:]); err != nil {
				t.Fatal(err)
			}
			if got := answerOf(out[0].Decision); got != want {
				t.Fatalf("%d of %s %s (max_wait %v, charge %v) at %d:\n got %+v\nwant %+v", c, limit.Algorithm, limit, limit.MaxWait, limit.Charge, clock.Instant(), got, want)
			}
			if taken.cost > 0 {
				if out[0].Receipt.At != comporta.Instant(taken.at) {
					t.Fatalf("counted at %d, want %d", out[0].Receipt.At, taken.at)
				}
				takes = append(takes, take{taken, out[0].Receipt})
			}
			last = want
		case "settle":
			if len(takes) == 0 {
				continue
			}
			i := rapid.IntRange(0, len(takes)-1).Draw(t, "which")
			s := takes[i]
			takes = append(takes[:i:i], takes[i+1:]...)
			if limit.Algorithm == comporta.LeakyBucket && s.ticket.life != o.lives {
				continue // see the comment on againstOracle
			}
			c := s.ticket.cost
			actual := max(0, rapid.SampledFrom([]int64{0, c - 1, c / 2, c, c + 1, c + rule.Full(), comporta.MaxCost}).Draw(t, "actual"))
			want := o.settle(limit, int64(clock.Instant()), s.ticket, actual)
			var out [1]comporta.Taken
			if err := store.Settle(t.Context(), []comporta.Settlement{{Key: key, Rule: rule, Taken: s.receipt, Actual: actual}}, out[:]); err != nil {
				t.Fatal(err)
			}
			if got := answerOf(out[0].Decision); got != want {
				t.Fatalf("settled %+v to %d of %s %s at %d:\n got %+v\nwant %+v", s.ticket, actual, limit.Algorithm, limit, clock.Instant(), got, want)
			}
			last = want
		}
	}
}

func compile(t interface {
	Helper()
	Fatalf(string, ...any)
}, limit comporta.Limit) *comporta.Rule {
	t.Helper()
	rule, err := limit.Compile()
	if err != nil {
		t.Fatalf("%+v: %v", limit, err)
	}
	return rule
}
