package policy_test

import (
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

func TestWhoWasDeniedStaysDenied(t *testing.T) {
	h := open(t, limits(
		limit(t, "blocking", "2/s", func(l *policy.Limit) { l.Block = 10 * time.Minute }),
		limit(t, "other", "100/min"),
	))
	ask := func() *policy.Verdict { return h.check(request("GET", "/", "203.0.113.7")) }
	ask()
	ask()
	if v := ask(); v.Allowed || v.RetryAfter != 10*time.Minute || v.Applied[0].Blocked {
		t.Errorf("the third: %+v", v)
	}
	h.now = h.now.Add(9 * time.Minute)
	v := ask()
	if v.Allowed || v.RetryAfter != time.Minute || !v.Applied[0].Blocked || v.Named != 0 {
		t.Errorf("nine minutes later: %+v", v)
	}
	if got := v.Applied[1].Decision.Remaining; got != 100 {
		t.Errorf("what is denied was charged elsewhere: %d remain", got)
	}
	if got := h.passes(1, "GET", "/", "203.0.113.8"); got != 1 {
		t.Error("another client is denied too")
	}
	h.now = h.now.Add(time.Minute - time.Microsecond)
	if ask().Allowed {
		t.Error("it passes before its time")
	}
	h.now = h.now.Add(time.Microsecond)
	if !ask().Allowed {
		t.Error("it does not pass in time: asking prolonged it")
	}
}

func TestWhatIsMarkedPasses(t *testing.T) {
	p := limits(limit(t, "soft", "1/min", func(l *policy.Limit) { l.OnLimit = policy.Mark }), limit(t, "hard", "3/min"))
	p.Marks = &policy.Marks{Key: make([]byte, 32)}
	h := open(t, p)
	for i, want := range []string{"", "marked", "marked", "denied"} {
		v := h.check(request("GET", "/", "203.0.113.7"))
		got := ""
		switch {
		case !v.Allowed:
			got = "denied"
		case v.Applied[0].Marks():
			got = "marked"
		}
		if got != want {
			t.Errorf("request %d: %q, want %q", i+1, got, want)
		}
	}
}

func TestPassingAShareOfTheQuotaIsToldOnce(t *testing.T) {
	quota, _ := comporta.ParseQuota("10/day")
	h := open(t, limits(&policy.Limit{Name: "daily", Per: socket, Limit: quota, WarnAt: 75}))
	var at []int
	for i := range 12 {
		if v := h.check(request("GET", "/", "203.0.113.7")); v.Applied[0].Warned {
			at = append(at, i+1)
		}
	}
	if len(at) != 1 || at[0] != 8 {
		t.Errorf("told at %v, want at the 8th: 7.5 units", at)
	}
}
