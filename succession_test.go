package comporta

import (
	"testing"
	"time"
)

func TestRulesFollowOneAnother(t *testing.T) {
	made := func() *Rule {
		r, err := Limit{Limit: 5, Window: time.Minute}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, plan, second, third, other := made(), made(), made(), made(), made()
	takes := []Take{{Rule: other}, {Rule: first}}
	if first.Current() != first || &CurrentTakes(takes)[0] != &takes[0] {
		t.Error("a rule that nobody followed is not its own")
	}
	second.Follow(first)
	second.Follow(plan) // which is no more
	second.Follow(second)
	for _, r := range []*Rule{first, plan, second} {
		if r.Current() != second {
			t.Error("the second does not decide")
		}
	}
	third.Follow(second)
	for _, r := range []*Rule{first, plan, second, third} {
		if r.Current() != third {
			t.Error("the third does not decide")
		}
	}
	if now := CurrentTakes(takes); now[0].Rule != other || now[1].Rule != third || takes[1].Rule != first {
		t.Error("takes by old rules: not by the last, or the caller's were changed")
	}
}
