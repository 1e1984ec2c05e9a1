package policy_test

import (
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
	"github.com/comporta/comporta/storetest"
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

// A block is told with the wait that it makes, from the first denial on, and with
// that of the budget behind it and of other limits where those are longer.
func TestABlockIsToldInFull(t *testing.T) {
	block := func(l *policy.Limit) { l.Block = 10 * time.Minute }
	h := open(t, limits(
		limit(t, "blocking", "2/s", block),
		limit(t, "slow", "5/h as fixed_window", match(t, "/slow")),
		limit(t, "slow-blocking", "1/h as fixed_window", match(t, "/rare"), block),
	))
	ask := func(path, peer string) *policy.Verdict { return h.check(request("GET", path, peer)) }
	h.passes(2, "GET", "/", "203.0.113.7")
	if d := ask("/", "203.0.113.7").Applied[0].Decision; d.ResetAfter != d.RetryAfter || d.Remaining != 0 || d.FullAfter < d.RetryAfter {
		t.Errorf("the denial that blocks: %+v", d)
	}
	if v := ask("/", "203.0.113.7"); v.RetryAfter != 10*time.Minute {
		t.Errorf("blocked: %+v", v.Outcome)
	}
	for range 5 {
		h.now = h.now.Add(time.Second)
		ask("/slow", "203.0.113.8")
	}
	h.passes(2, "GET", "/", "203.0.113.8")
	ask("/", "203.0.113.8")
	if v := ask("/slow", "203.0.113.8"); v.RetryAfter < 59*time.Minute || v.Applied[1].Decision.Allowed {
		t.Errorf("blocked, and over another limit: %+v", v)
	}
	ask("/rare", "203.0.113.9")
	ask("/rare", "203.0.113.9")
	if v := ask("/rare", "203.0.113.9"); !v.Applied[1].Blocked || v.RetryAfter < 59*time.Minute {
		t.Errorf("blocked for less than until the budget is back: %+v", v)
	}
}

// A limit that a bad request is not counted under does not block it either.
func TestABadRequestIsHeldByTheLimitsThatCountIt(t *testing.T) {
	block := func(l *policy.Limit) { l.Block = 10 * time.Minute }
	body := &card{kind: "body", stage: identity.Body}
	h := open(t, limits(
		limit(t, "soft", "1/h", func(l *policy.Limit) { block(l); l.OnLimit = policy.Demote }),
		limit(t, "failures", "1/h", func(l *policy.Limit) {
			block(l)
			l.Limit.Charge, l.Failure.Class = comporta.Failures, []int{4}
		}),
		limit(t, "accounts", "9/h", per(body)),
	))
	h.check(request("GET", "/elsewhere", "203.0.113.9"))
	body.err = &identity.RequestError{Status: 413, Detail: "Too large."}
	for range 3 {
		v := h.check(request("GET", "/", "203.0.113.7", "X-Body", "b"))
		if len(v.Applied) != 1 || v.Refused == nil {
			t.Errorf("%+v", v)
		}
	}
}

// A store that fails after it said that a client is blocked gives that client nothing
// for free.
func TestABlockedClientIsCountedWhenTheStoreFails(t *testing.T) {
	h := open(t, limits())
	store, err := memstore.New(memstore.Options{Now: func() time.Time { return h.now }})
	if err != nil {
		t.Fatal(err)
	}
	local, err := memstore.New(memstore.Options{Now: func() time.Time { return h.now }})
	if err != nil {
		t.Fatal(err)
	}
	p := limits(limit(t, "blocking", "2/s", func(l *policy.Limit) { l.Block = time.Hour }))
	down, calls := false, 0
	faults := &storetest.Faults{Store: store, Script: func(int) storetest.Fault {
		if calls++; down && calls%2 == 0 { // the look goes through, the take does not
			return storetest.Lost
		}
		return storetest.None
	}}
	if h.Engine, err = policy.NewEngine(&p, faults, policy.Options{Now: func() time.Time { return h.now }, Local: local}); err != nil {
		t.Fatal(err)
	}
	h.passes(3, "GET", "/", "203.0.113.7")
	down, calls = true, 0
	if got := h.passes(9, "GET", "/", "203.0.113.7"); got != 2 {
		t.Errorf("%d pass, want what the local store has", got)
	}
}
