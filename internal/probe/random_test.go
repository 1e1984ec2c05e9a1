package probe

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
)

// An outcome is what came of probing one random server.
type outcome struct {
	c        simCase
	f        *Finding
	err      error
	requests int
	time     time.Duration
}

func (c simCase) probe(t *testing.T, b Budget) (o outcome) {
	o.c = c
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(c.begin)
		s := NewSession(c.server(), b, nil)
		begun := time.Now()
		o.f, o.err = Learn(t.Context(), s)
		o.requests, o.time = len(s.Shots()), time.Since(begun)
		if o.requests > b.Requests || o.time > b.Time {
			t.Errorf("%d requests and %v of %+v", o.requests, o.time, b)
		}
	})
	return o
}

// wrong says what is not as it is; "" if all is.
func (o *outcome) wrong() string {
	var no []string
	say := func(format string, args ...any) { no = append(no, fmt.Sprintf(format, args...)) }
	l := o.c.limit
	if len(o.f.Algorithms) == 0 {
		return "nothing found"
	}
	if a := o.f.Algorithms[0].Algorithm; a != l.Algorithm && !(l.Burst == 1 && a.Bucket()) { // a queue of one never waits
		say("%v", a)
	}
	got := o.f.Limit
	if l.Algorithm.Bucket() {
		// Ten a second and six hundred a minute are the same bucket: its rate and what
		// it holds are all that there is to know.
		rate := float64(l.Limit) / l.Window.Seconds()
		if r := float64(got.Limit) / got.Window.Seconds(); math.Abs(r-rate) > 0.03*rate {
			say("rate %.4g for %.4g", r, rate)
		}
		want, is := l.Burst, got.Burst
		if want == 0 {
			want = l.Limit
		}
		if is == 0 {
			is = got.Limit
		}
		if want-is > 1 || is-want > 1 {
			say("burst %d for %d", is, want)
		}
	} else {
		if got.Limit != l.Limit {
			say("limit %d for %d", got.Limit, l.Limit)
		}
		if w := got.Window.Seconds() / l.Window.Seconds(); math.Abs(w-1) > 0.03 {
			say("window %v for %v", got.Window, l.Window)
		}
	}
	return strings.Join(no, ", ")
}

// outside says which of the ranges of a finding does not hold the truth; "" if all do.
func (o *outcome) outside() string {
	l, f := o.c.limit, o.f
	if len(f.Algorithms) == 0 || f.Algorithms[0].Algorithm != l.Algorithm {
		return ""
	}
	var no []string
	in := func(what string, e Estimate, truth float64) {
		if truth < e.Low*0.9999 || truth > e.High*1.0001 {
			no = append(no, fmt.Sprintf("%s %.5g is not from %.5g to %.5g", what, truth, e.Low, e.High))
		}
	}
	if !l.Algorithm.Bucket() {
		in("the limit", f.Units, float64(l.Limit))
		in("the window", f.Window, l.Window.Seconds())
		return strings.Join(no, ", ")
	}
	in("the rate", f.Units, float64(l.Limit)/l.Window.Seconds()*f.Window.Value)
	burst := l.Burst
	if burst == 0 {
		burst = l.Limit
	}
	in("the burst", f.Burst, float64(burst))
	return strings.Join(no, ", ")
}

func (o *outcome) certainty() float64 {
	if len(o.f.Algorithms) == 0 {
		return 0
	}
	return o.f.Algorithms[0].Certainty
}

func probeAll(t *testing.T, seeds []uint64) []outcome {
	out := make([]outcome, len(seeds))
	var group sync.WaitGroup
	gate := make(chan struct{}, 2)
	for i, seed := range seeds {
		group.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			out[i] = randomCase(seed).probe(t, Budget{5000, 10 * time.Minute})
		})
	}
	group.Wait()
	return out
}

func seedsFrom(first, n uint64) (s []uint64) {
	for i := range n {
		s = append(s, first+i)
	}
	return s
}

func report(t *testing.T, out []outcome) (right, surelyWrong int) {
	all := comporta.Algorithms()
	table := map[[2]comporta.Algorithm]int{}
	none := map[comporta.Algorithm]int{}
	var requests, most int
	var took, longest time.Duration
	var charge [2][3]int
	for i := range out {
		o := &out[i]
		requests += o.requests
		took += o.time
		most, longest = max(most, o.requests), max(longest, o.time)
		if len(o.f.Algorithms) == 0 {
			none[o.c.limit.Algorithm]++
		} else {
			table[[2]comporta.Algorithm{o.c.limit.Algorithm, o.f.Algorithms[0].Algorithm}]++
		}
		if o.c.limit.Algorithm != comporta.FixedWindow {
			k := 2
			if d := o.f.DenialsCount; d.Known && d.Yes {
				k = 1
			} else if d.Known {
				k = 0
			}
			charge[o.c.limit.Charge][k]++
		}
		if no := o.wrong(); no != "" {
			t.Logf("seed %d, %v (%v charge, burst %d): %s (certainty %.2f; %d requests, %v, %v) %v", o.c.seed, o.c.limit.Algorithm, o.c.limit.Charge, o.c.limit.Burst, no, o.certainty(), o.requests, o.time.Round(time.Second), fmt.Sprint(o.c.limit.Limit, "/", o.c.limit.Window), o.err)
			if o.certainty() > 0.9 {
				surelyWrong++
			}
		} else {
			right++
		}
	}
	held := 0
	for i := range out {
		if no := out[i].outside(); no != "" {
			t.Logf("seed %d, %v, charge %v: %s", out[i].c.seed, out[i].c.limit.Algorithm, out[i].c.limit.Charge, no)
		} else {
			held++
		}
	}
	t.Logf("the ranges held the truth in %d", held)
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s", "is \\ named")
	for _, a := range all {
		fmt.Fprintf(&b, "%16v", a)
	}
	for _, a := range all {
		fmt.Fprintf(&b, "\n%-16v", a)
		for _, as := range all {
			fmt.Fprintf(&b, "%16d", table[[2]comporta.Algorithm{a, as}])
		}
		if none[a] > 0 {
			fmt.Fprintf(&b, " none %d", none[a])
		}
	}
	t.Logf("\n%s", &b)
	n := len(out)
	t.Logf("%d of %d right, %d wrong with certainty over 90%%; requests: %d in the mean, %d at most; time: %v in the mean, %v at most; denials count (no, yes, unknown): admitted %v attempts %v",
		right, n, surelyWrong, requests/n, most, (took / time.Duration(n)).Round(time.Second), longest.Round(time.Second), charge[0], charge[1])
	return right, surelyWrong
}

// skipRaced leaves out what computes for minutes under the race detector: one
// goroutine does that, and others look for races.
func skipRaced(t *testing.T) {
	if raced {
		t.Skip("too slow under the race detector")
	}
}

// The seeds were not looked at while the inference was made: it was made with others.
func TestRandomServers(t *testing.T) {
	if raced { // ten times as slow: races show in a few
		if _, surelyWrong := report(t, probeAll(t, seedsFrom(20_001, 8))); surelyWrong > 0 {
			t.Errorf("%d wrong with certainty over 90%%", surelyWrong)
		}
		return
	}
	right, surelyWrong := report(t, probeAll(t, seedsFrom(20_001, 100)))
	if right < 95 || surelyWrong > 0 {
		t.Errorf("%d of 100 right, %d wrong with certainty over 90%%", right, surelyWrong)
	}
}

// Others, as many as one likes: PROBE_SEEDS=30001,300 go test -run MoreRandom -v .
func TestMoreRandomServers(t *testing.T) {
	var first, n uint64
	if _, err := fmt.Sscanf(os.Getenv("PROBE_SEEDS"), "%d,%d", &first, &n); err != nil {
		t.Skip("PROBE_SEEDS is not set to the first seed and how many")
	}
	report(t, probeAll(t, seedsFrom(first, n)))
}
