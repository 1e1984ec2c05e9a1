package probe

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/client"
)

var calm = latency{5 * time.Millisecond, 15 * time.Millisecond}

// learn probes a server that a test has made.
func learn(t *testing.T, server *simServer, b Budget) (f *Finding, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12345 * time.Millisecond)
		s := NewSession(server, b, nil)
		begun := time.Now()
		f, err = Learn(t.Context(), s)
		if n := len(s.Shots()); n > b.Requests || time.Since(begun) > b.Time {
			t.Errorf("%d requests in %v, of %+v", n, time.Since(begun), b)
		}
	})
	return f, err
}

var plenty = Budget{Requests: 5000, Time: 10 * time.Minute}

func evidenceSays(t *testing.T, f *Finding, words string) {
	t.Helper()
	if all := strings.Join(f.Evidence, "\n"); !strings.Contains(all, words) {
		t.Errorf("the evidence does not say %q:\n%s", words, all)
	}
}

func TestAnUnlimitedServer(t *testing.T) {
	f, err := learn(t, newSimServer(comporta.Limit{Unlimited: true}, 0, 1, calm, calm), plenty)
	if err != nil || f.Limited || f.AtLeast != 3000 || len(f.Algorithms) != 0 || f.Within <= 0 {
		t.Errorf("%+v, %v", f, err)
	}
	evidenceSays(t, f, "all of 3000 requests")
}

func TestAServerThatDeniesAll(t *testing.T) {
	f, err := learn(t, newSimServer(comporta.Limit{Limit: 0, Window: time.Second}, 0, 1, calm, calm), plenty)
	if err != nil || !f.Limited || f.AtLeast != 0 || len(f.Algorithms) != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	evidenceSays(t, f, "were denied: the limit is 0")
}

func TestAServerThatFails(t *testing.T) {
	for _, at := range []int{1, 3, 40, 60} {
		server := newSimServer(comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 50, Window: 10 * time.Second}, 0, 1, calm, calm)
		server.failAt = at
		f, err := learn(t, server, plenty)
		if !errors.Is(err, ErrServer) || f == nil {
			t.Fatalf("failing from %d on: %+v, %v", at, f, err)
		}
		if len(f.Algorithms) > 0 && f.Algorithms[0].Certainty > 0.9 {
			t.Errorf("failing from %d on: certain of %+v", at, f.Algorithms)
		}
		if server.asked > 100 {
			t.Errorf("failing from %d on: asked %d times", at, server.asked)
		}
	}
}

// A key that was used before the probe began: it begins anew when that is over.
func TestAKeyThatWasUsedBefore(t *testing.T) {
	l := comporta.Limit{Algorithm: comporta.SlidingLog, Limit: 20, Window: 5 * time.Second}
	server := newSimServer(l, 0, 1, calm, calm)
	var f *Finding
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Second)
		for range 20 {
			server.key.take(comporta.InstantOf(time.Now()))
		}
		var err error
		if f, err = Learn(t.Context(), NewSession(server, plenty, nil)); err != nil {
			t.Error(err)
		}
	})
	o := outcome{c: simCase{limit: l}, f: f}
	if no := o.wrong(); no != "" {
		t.Errorf("%s: %+v", no, f)
	}
}

// Too small a budget leaves what is known, and never a wrong answer that is certain.
func TestBudgetsThatAreTooSmall(t *testing.T) {
	skipRaced(t)
	certain := 0
	for _, b := range []Budget{
		{1, time.Minute}, {5, time.Minute}, {20, time.Minute}, {60, time.Minute}, {200, time.Minute},
		{5000, 100 * time.Millisecond}, {5000, time.Second}, {5000, 10 * time.Second}, {5000, 30 * time.Second},
	} {
		for seed := uint64(40_001); seed <= 40_015; seed++ {
			o := randomCase(seed).probe(t, b)
			if o.f == nil {
				t.Fatalf("%+v, seed %d: no finding, %v", b, seed, o.err)
			}
			no := o.wrong()
			if o.certainty() > 0.9 {
				certain++
				if no != "" {
					t.Errorf("%+v, seed %d (%v): certain, but %s", b, seed, o.c.limit, no)
				}
			}
		}
	}
	t.Logf("%d were certain all the same", certain)
}

// tell writes what a server says of its limit, times some factor.
func tell(factor int64) func(comporta.Taken, *comporta.Rule) ([]client.Hint, time.Duration, bool) {
	return func(d comporta.Taken, r *comporta.Rule) ([]client.Hint, time.Duration, bool) {
		window := (r.WindowAt(0) + time.Second - 1).Truncate(time.Second)
		h := client.Hint{Dialect: "test", Unit: "requests", Limit: factor * d.Limit, Remaining: factor * d.Remaining, Reset: d.ResetAfter, Window: time.Duration(factor) * window}
		return []client.Hint{h}, time.Duration(factor) * d.RetryAfter, !d.Allowed
	}
}

func TestHeadersAreHeardButNotTrusted(t *testing.T) {
	skipRaced(t)
	for seed := uint64(50_001); seed <= 50_012; seed++ {
		for _, factor := range []int64{1, 3} {
			var o outcome
			c := randomCase(seed)
			server := c.server()
			server.headers = tell(factor)
			o.c = c
			o.f, o.err = learn(t, server, plenty)
			if no := o.wrong(); no != "" {
				t.Errorf("seed %d, headers times %d: %s", seed, factor, no)
			}
			words := "headers say"
			if factor > 1 {
				words = "they are not believed"
			}
			evidenceSays(t, o.f, words)
		}
	}
}

// One in a hundred answers never comes: nobody knows whether it was counted, so a
// limit of 500 cannot be told from one of 498. It is said how far it may be off.
func TestLostRequests(t *testing.T) {
	skipRaced(t)
	named, held, n := 0, 0, 20
	for seed := uint64(60_001); seed < 60_001+uint64(n); seed++ {
		c := randomCase(seed)
		server := c.server()
		server.lose = 0.01
		o := outcome{c: c}
		o.f, o.err = learn(t, server, plenty)
		if o.f.Algorithms[0].Algorithm == c.limit.Algorithm {
			named++
		}
		if no := o.outside(); no == "" {
			held++
		} else {
			t.Logf("seed %d (%v %v): %s", seed, c.limit.Algorithm, c.limit.Charge, no)
		}
		if no := o.wrong(); no != "" {
			t.Logf("seed %d (%v %v): %s, certainty %.2f, %v", seed, c.limit.Algorithm, c.limit.Charge, no, o.certainty(), o.err)
			if o.certainty() > 0.9 {
				t.Errorf("seed %d: certain of what is wrong", seed)
			}
		}
	}
	if named < n-1 || held < n-1 {
		t.Errorf("%d of %d named, and %d ranges hold", named, n, held)
	}
}

// The truth is never excluded: whatever was seen of a server, its own numbers fit it.
func TestBoundsHoldForTheTruth(t *testing.T) {
	for seed := uint64(70_001); seed <= 70_060; seed++ {
		c := randomCase(seed)
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(c.begin)
			l := newLearner(t.Context(), NewSession(c.server(), Budget{1500, 3 * time.Minute}, nil))
			defer l.end()
			if denied, err := l.first(); err != nil || !denied {
				return
			}
			rnd := rand.New(rand.NewPCG(seed, 3))
			for range 6 { // any use will do
				if l.until(l.elapsed()+rnd.Float64()*c.limit.Window.Seconds()) != nil {
					return
				}
				if _, _, err := l.ramp(1+rnd.IntN(int(c.limit.Limit)), l.s.Left().Requests, 1.5); err != nil {
					return
				}
			}
			e := l.evidence()
			if m := c.truth(l.begun); true {
				e.queue.known = false
				e.try(&m)
				if !m.fits() {
					t.Errorf("seed %d, %v: its own numbers miss by %.2f units: %+v", seed, c.limit, m.strain, m)
				}
			}
		})
	}
}

// truth is the model that the server of a case is.
func (c simCase) truth(begun time.Time) model {
	m := model{variant: variant{algorithm: c.limit.Algorithm, attempts: c.limit.Charge == comporta.Attempts}, window: c.limit.Window.Seconds()}
	switch m.algorithm {
	case comporta.LeakyBucket, comporta.TokenBucket:
		m.algorithm = comporta.TokenBucket
		m.window /= float64(c.limit.Limit)
	case comporta.FixedWindow, comporta.SlidingCounter:
		rule, _ := c.limit.Compile()
		start, _ := rule.WindowOf(comporta.InstantOf(begun), c.phase)
		// The way there is taken to be half of the shortest trip.
		m.boundary = start.Time().Sub(begun).Seconds() + (c.back.least-c.there.least).Seconds()/2
	}
	return m
}
