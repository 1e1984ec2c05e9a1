package policy_test

import (
	"net/http"
	"testing"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// answered is one request under a limit that warns, and whether its answer brought
// the use there.
func (h *house) answered(t *testing.T, status int, cost string) bool {
	t.Helper()
	v := h.check(request("POST", "/", "203.0.113.7"))
	if !v.Allowed {
		t.Fatalf("refused: %+v", v.Applied)
	}
	warned := v.Applied[0].Warned
	p := h.Pending(v)
	if p == nil {
		return warned
	}
	if warned {
		t.Error("warned before it was known")
	}
	header := http.Header{"X-Cost": {cost}}
	if err := p.Begin(t.Context(), status, header, false); err != nil {
		t.Fatal(err)
	}
	if err := p.End(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	return p.Warned() && p.Verdict().Applied[0].Warned
}

// What an answer settles is warned of by what it cost, once.
func TestPassingAShareIsToldByWhatAnswersCost(t *testing.T) {
	l := limit(t, "tokens", "100/min as fixed_window", func(l *policy.Limit) {
		l.WarnAt, l.Estimate = 80, &policy.Estimate{Default: 1, ResponseHeader: "X-Cost"}
	})
	h := open(t, limits(l))
	for i, c := range []struct {
		cost string
		want bool
	}{{"10", false}, {"85", true}, {"1", false}, {"no number", false}} {
		if got := h.answered(t, 200, c.cost); got != c.want {
			t.Errorf("answer %d: %v", i+1, got)
		}
	}
	failing := limit(t, "login", "5/min as fixed_window", func(l *policy.Limit) {
		l.WarnAt, l.Limit.Charge, l.Failure = 60, comporta.Failures, policy.Failure{Status: []int{401}}
	})
	h = open(t, limits(failing))
	for i, c := range []struct {
		status int
		want   bool
	}{{401, false}, {200, false}, {401, false}, {200, false}, {401, true}, {200, false}, {401, false}} {
		if got := h.answered(t, c.status, ""); got != c.want {
			t.Errorf("login %d: %v", i+1, got)
		}
	}
}
