package sim

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"pgregory.net/rapid"
)

func crowdOf(t *testing.T, limit string, algorithm comporta.Algorithm, clients int) Crowd {
	t.Helper()
	l, err := comporta.ParseLimit(limit)
	if err != nil {
		t.Fatal(err)
	}
	l.Algorithm = algorithm
	return Crowd{Limit: l, Clients: clients, Latency: 20 * time.Millisecond, Jitter: 5 * time.Millisecond}
}

func crowded(t *testing.T, c Crowd) map[string]*Party {
	t.Helper()
	report, err := c.Play()
	if err != nil {
		t.Fatal(err)
	}
	parties := map[string]*Party{}
	for _, p := range report.Parties {
		parties[p.Name] = p
		if p.Successes != p.wanted || p.Stopped || p.Sent != p.Successes+p.Refused {
			t.Errorf("%s: %d sent, %d refused, %d of %d answered", p.Name, p.Sent, p.Refused, p.Successes, p.wanted)
		}
	}
	return parties
}

// A thousand clients, of which at most 100 a second pass: ours are hardly ever
// refused and take little longer than must be, whatever the algorithm and whoever
// is beside them. A naive client is refused again and again.
func TestCrowd(t *testing.T) {
	for _, algorithm := range comporta.Algorithms() {
		for seed := range uint64(3) {
			crowd := crowdOf(t, "100/s", algorithm, 1000)
			crowd.Seed = seed
			parties := crowded(t, crowd)
			together, beside, alone, hammer := parties["ours, together"], parties["ours, beside"], parties["ours, apart"], parties["the naive one"]
			fault := func(format string, args ...any) {
				t.Helper()
				t.Errorf("%s, seed %d: "+format, append([]any{algorithm, seed}, args...)...)
			}
			for name, p := range parties {
				if least := 9 * time.Second; p.Took < least {
					fault("%s: over in %v, and %v is the least", name, p.Took, least)
				}
			}
			if r := together.RefusedPerSuccess(); r > 0.01 {
				fault("ours, together: %.3f refused per success", r)
			}
			if r := beside.RefusedPerSuccess(); r > 0.05 {
				fault("ours, beside a naive one: %.3f refused per success", r)
			}
			if together.Spike > 100 || beside.Spike > 100 {
				fault("ours, together: spikes of %d and %d, and the limit holds 100", together.Spike, beside.Spike)
			}
			for _, p := range []*Party{parties["naive"], hammer} {
				if p.RefusedPerSuccess() < 20 || p.Spike < 500 {
					fault("%s: %.2f refused per success, a spike of %d", p.Name, p.RefusedPerSuccess(), p.Spike)
				}
			}
			for _, name := range []string{"naive", "told", "backoff"} {
				if p := parties[name]; alone.RefusedPerSuccess() > 0.8*p.RefusedPerSuccess() {
					fault("ours, apart: %.2f refused per success, %s %.2f", alone.RefusedPerSuccess(), name, p.RefusedPerSuccess())
				}
			}
			if alone.Spike > 300 {
				fault("ours, apart: a spike of %d", alone.Spike)
			}
			// The sliding algorithms give back late what was spent early, and ours leave a
			// quarter of it to others.
			most := 15 * time.Second
			if algorithm.Bucket() {
				most = 11 * time.Second
			}
			if together.Took > most {
				fault("ours, together: over in %v", together.Took)
			}
		}
	}
}

// What is told of a run is what happened in it.
func TestCrowdByHand(t *testing.T) {
	crowd := crowdOf(t, "2/10s", comporta.FixedWindow, 5)
	crowd.Latency, crowd.Jitter = time.Second, 0
	naive := crowded(t, crowd)["naive"]
	// They arrive at 1 s, and again each 2.1 s: two pass at 1, 11.5 and 22 s.
	type numbers struct {
		successes, sent, refused, spike int
		took, median, p99               time.Duration
	}
	got := numbers{naive.Successes, naive.Sent, naive.Refused, naive.Spike, naive.Took, naive.Median, naive.P99}
	want := numbers{5, 25, 5*3 + 5*1, 3, 23 * time.Second, 12500 * time.Millisecond, 23 * time.Second}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The same flags give the same numbers, and another seed gives others.
func TestCrowdIsRepeatable(t *testing.T) {
	written := func(seed uint64) string {
		crowd := crowdOf(t, "100/s", comporta.TokenBucket, 200)
		crowd.Seed, crowd.Requests, crowd.StartWithin = seed, 3, time.Second
		report, err := crowd.Play()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		for _, err := range []error{report.WriteText(&b, Screen{Width: 80}), report.WriteJSON(&b), report.WriteSVG(&b)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	first := written(1)
	if again := written(1); again != first {
		t.Error("another run gives something else")
	}
	if other := written(2); other == first {
		t.Error("another seed gives the same")
	}
}

// A run that would go on and on is ended, and the report says so.
func TestCrowdEnds(t *testing.T) {
	crowd := crowdOf(t, "1/h", comporta.TokenBucket, 1000)
	crowd.most = 20_000
	report, err := crowd.Play()
	if err != nil {
		t.Fatal(err)
	}
	var text, picture bytes.Buffer
	if err := report.WriteText(&text, Screen{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteSVG(&picture); err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Parties {
		if !p.Stopped || p.Successes == p.wanted || p.Sent > 20_000 || len(p.bars.bars) > mostBars {
			t.Errorf("%s: stopped %v, %d answered, %d sent, %d bars", p.Name, p.Stopped, p.Successes, p.Sent, len(p.bars.bars))
		}
		if said := p.Name + ": stopped after"; !strings.Contains(text.String(), said) {
			t.Errorf("not said: %q", said)
		}
	}
	if n := picture.Len(); n > 300_000 {
		t.Errorf("a picture of %d bytes", n)
	}
}

func TestCrowdRefusesNonsense(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(*Crowd)
	}{
		{"clients: from 1", func(c *Crowd) { c.Clients = 0 }},
		{"clients: from 1", func(c *Crowd) { c.Clients = mostClients + 1 }},
		{"requests: at most", func(c *Crowd) { c.Requests = mostAttempts }},
		{"requests: at most", func(c *Crowd) { c.Requests = math.MaxInt }},
		{"latency", func(c *Crowd) { c.Latency = -1 }},
		{"latency", func(c *Crowd) { c.Latency = time.Hour }},
		{"jitter", func(c *Crowd) { c.Jitter = c.Latency + 1 }},
		{"start within", func(c *Crowd) { c.StartWithin = -1 }},
		{"lets some through", func(c *Crowd) { c.Limit = comporta.Limit{Unlimited: true} }},
		{"lets some through", func(c *Crowd) { c.Limit.Limit = 0 }},
		{"at most a day", func(c *Crowd) { c.Limit.Window = 48 * time.Hour }},
		{"window", func(c *Crowd) { c.Limit.Window = 0 }},
	} {
		crowd := crowdOf(t, "100/s", comporta.TokenBucket, 10)
		c.spoil(&crowd)
		if _, err := crowd.Play(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q: %v", c.want, err)
		}
	}
}

// The spike is that of the plain definition: for each attempt, those in the 100 ms
// that end with it.
func TestSpike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gaps := rapid.SliceOf(rapid.IntRange(0, 60)).Draw(t, "gaps")
		var s spike
		var all []time.Duration
		at, want := time.Duration(0), 0
		for _, gap := range gaps {
			at += time.Duration(gap) * time.Millisecond
			all = append(all, at)
			s.add(at)
			n := 0
			for _, other := range all {
				if other > at-spikeTime {
					n++
				}
			}
			want = max(want, n)
		}
		if s.most != want {
			t.Fatalf("%d, want %d", s.most, want)
		}
	})
}

// Bars lose nothing when they become wider.
func TestCrowdBars(t *testing.T) {
	b := crowdBars{step: crowdStep}
	for n := range 5000 {
		b.add(time.Duration(n)*crowdStep, n%3 == 0)
	}
	count := func(bars []crowdBar) (admitted, refused int) {
		for _, bar := range bars {
			admitted, refused = admitted+bar.admitted, refused+bar.refused
		}
		return admitted, refused
	}
	if b.step != 4*crowdStep || len(b.bars) != 1250 {
		t.Errorf("%d bars of %v", len(b.bars), b.step)
	}
	for _, bars := range [][]crowdBar{b.bars, b.merged(7)} {
		if admitted, refused := count(bars); admitted != 1667 || refused != 3333 {
			t.Errorf("%d admitted, %d refused", admitted, refused)
		}
	}
	report := &CrowdReport{Parties: []*Party{{bars: b}, {bars: crowdBars{step: crowdStep, bars: slices.Repeat([]crowdBar{{1, 0}}, 8)}}}}
	step, all := report.bars(400)
	if step != 16*crowdStep || len(all[0]) != 313 || len(all[1]) != 1 || all[1][0].admitted != 8 {
		t.Errorf("%v, %d and %d bars", step, len(all[0]), len(all[1]))
	}
}
