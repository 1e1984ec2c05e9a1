package sim

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/manners"
	"github.com/google/go-cmp/cmp"
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
			if r := beside.RefusedPerSuccess(); r > 0.1 {
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
			most := 13 * time.Second
			if algorithm.Bucket() {
				most = 11 * time.Second
				if together.Spike > 20 {
					fault("ours, together: a spike of %d, and the rate is 10", together.Spike)
				}
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
	report, err := crowd.Play()
	if err != nil {
		t.Fatal(err)
	}
	if report.Opens != 10*time.Second {
		t.Errorf("opens at %v", report.Opens)
	}
	type numbers struct {
		successes, sent, refused, spike int
		took, median, p99               time.Duration
	}
	for i, want := range []numbers{
		// They arrive at 1 s, and again each 2.1 s: two pass at 1 and at 11.5 s, one at 22 s.
		{5, 25, 5*3 + 5*1, 3, 23 * time.Second, 12500 * time.Millisecond, 23 * time.Second},
		// They are told 9 s at 1 s, and 8 s at 12 s: the last passes at 22 s.
		{5, 9, 3 + 1, 3, 23 * time.Second, 13 * time.Second, 23 * time.Second},
	} {
		p := report.Parties[i]
		if got := (numbers{p.Successes, p.Sent, p.Refused, p.Spike, p.Took, p.Median, p.P99}); got != want {
			t.Errorf("%s: %+v, want %+v", p.Name, got, want)
		}
	}
}

// Whoever comes one by one to a limit that has room is not refused, and there is
// nothing that could open.
func TestCrowdThatFits(t *testing.T) {
	crowd := crowdOf(t, "100/s", comporta.SlidingLog, 100)
	crowd.StartWithin = 10 * time.Second
	report, err := crowd.Play()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Parties[:5] {
		if p.Refused > 0 || report.Opens != 0 || p.P99 > 50*time.Millisecond || p.Spike < 2 || p.Spike > 20 || p.Took < 9*time.Second || p.Took > 11*time.Second {
			t.Errorf("%s: %d refused, p99 %v, spike %d, over in %v; opens at %v", p.Name, p.Refused, p.P99, p.Spike, p.Took, report.Opens)
		}
	}
}

// The simulated server says what the gateway says in its headers.
func TestCrowdIsToldWhatTheGatewaySays(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		limit     string
		algorithm comporta.Algorithm
		takes     int
		want      manners.Answer
	}{
		{"100/min burst 10", comporta.TokenBucket, 1, manners.Answer{Retryable: true, Hints: []manners.Hint{{Limit: 10, Remaining: 9, Reset: 6 * second, Window: 6 * second}}}},
		{"100/min burst 10", comporta.TokenBucket, 11, manners.Answer{Kind: manners.Refused, Told: true, Wait: second, Retryable: true, Hints: []manners.Hint{{Limit: 10, Reset: second, Window: 6 * second}}}},
		{"3/2500ms", comporta.FixedWindow, 4, manners.Answer{Kind: manners.Refused, Told: true, Wait: 3 * second, Retryable: true, Hints: []manners.Hint{{Limit: 3, Reset: 3 * second, Window: 3 * second}}}},
		{"3/500ms", comporta.SlidingLog, 2, manners.Answer{Retryable: true, Hints: []manners.Hint{{Limit: 3, Remaining: 1, Reset: second, Window: -1}}}},
	} {
		rule, err := crowdOf(t, c.limit, c.algorithm, 1).Limit.Compile()
		if err != nil {
			t.Fatal(err)
		}
		var k key
		var d comporta.Taken
		for range c.takes {
			d = k.take(rule, 0, 1)
		}
		if diff := cmp.Diff(c.want, say(rule, 0, &d.Decision)); diff != "" {
			t.Errorf("%s, %d taken (-want +got):\n%s", c.limit, c.takes, diff)
		}
	}
}

// A retry stands where its request stood.
func TestCrowdStandsInOrder(t *testing.T) {
	crowd := crowdOf(t, "100/s", comporta.TokenBucket, 1)
	rule, err := crowd.Limit.Compile()
	if err != nil {
		t.Fatal(err)
	}
	run := newCrowdRun(crowd, rule, 0)
	lane := run.lane()
	shut := manners.Answer{Kind: manners.Refused, Told: true, Wait: time.Minute}
	lane.back(lane.Leave(run.now.Time(), false), &shut)
	for _, place := range []int{3, 5, 2, 4, 1} {
		lane.join(&crowdClient{run: run, place: place})
	}
	for i, c := range lane.line {
		if c.place != i+1 {
			t.Errorf("place %d stands at %d", c.place, i+1)
		}
	}
}

// The same flags give the same numbers, and another seed gives others.
func TestCrowdIsRepeatable(t *testing.T) {
	written := func(seed uint64) (text, rest string) {
		crowd := crowdOf(t, "100/s", comporta.TokenBucket, 200)
		crowd.Seed, crowd.Requests, crowd.StartWithin = seed, 3, time.Second
		report, err := crowd.Play()
		if err != nil {
			t.Fatal(err)
		}
		var a, b bytes.Buffer
		for _, err := range []error{report.WriteText(&a, Screen{Width: 80}), report.WriteJSON(&b), report.WriteSVG(&b)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return a.String(), b.String()
	}
	text, rest := written(1)
	if againText, againRest := written(1); againText != text || againRest != rest {
		t.Error("another run gives something else")
	}
	if other, _ := written(2); other == text {
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

func TestSpikeIsOfLessThanItsTime(t *testing.T) {
	var s spike
	for _, at := range []time.Duration{0, spikeTime, 2*spikeTime - 1, 3 * spikeTime} {
		s.add(at)
	}
	if s.most != 2 {
		t.Error(s.most)
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
	if b.step != 10*crowdStep || len(b.bars) != 500 {
		t.Errorf("%d bars of %v", len(b.bars), b.step)
	}
	for _, bars := range [][]crowdBar{b.bars, b.merged(7)} {
		if admitted, refused := count(bars); admitted != 1667 || refused != 3333 {
			t.Errorf("%d admitted, %d refused", admitted, refused)
		}
	}
	report := &CrowdReport{Parties: []*Party{{bars: b}, {bars: crowdBars{step: crowdStep, bars: slices.Repeat([]crowdBar{{1, 0}}, 8)}}}}
	step, all := report.bars(400)
	if step != 20*crowdStep || len(all[0]) != 250 || len(all[1]) != 1 || all[1][0].admitted != 8 {
		t.Errorf("%v, %d and %d bars", step, len(all[0]), len(all[1]))
	}
}
