package sim

import (
	"bytes"
	"testing"
	"time"

	"github.com/comporta/comporta"
)

func crowdOf(t *testing.T, algorithm comporta.Algorithm, clients int) Crowd {
	limit, err := comporta.ParseLimit("100/s")
	if err != nil {
		t.Fatal(err)
	}
	limit.Algorithm = algorithm
	return Crowd{Limit: limit, Clients: clients, Latency: 15 * time.Millisecond, Jitter: 10 * time.Millisecond}
}

// A thousand callers, of which at most 100 a second pass: ours need little more
// than the time that takes, and are hardly ever refused, whatever the algorithm
// and whoever is beside them.
func TestCrowd(t *testing.T) {
	for _, algorithm := range comporta.Algorithms() {
		t.Run(algorithm.String(), func(t *testing.T) {
			report, err := crowdOf(t, algorithm, 1000).Play()
			if err != nil {
				t.Fatal(err)
			}
			runs := map[string]*CrowdRun{}
			for _, r := range report.Runs {
				runs[r.name()] = r
				if r.Done != 1000 || r.Given || r.Sent-r.Refused < 1000 {
					t.Errorf("%s: %d done, %d sent, %d refused", r.name(), r.Done, r.Sent, r.Refused)
				}
				if r.Took < 9*time.Second {
					t.Errorf("%s: over in %v: more passed than the limit lets through", r.name(), r.Took)
				}
			}
			ours, beside, apart := runs["ours, together"], runs["ours, beside a naive one"], runs["ours, apart"]
			if r := ours.RefusedPerDone(); r > 0.01 {
				t.Errorf("ours, together: %.3f refused per success", r)
			}
			if r := beside.RefusedPerDone(); r > 0.05 {
				t.Errorf("ours, beside a naive one: %.3f refused per success", r)
			}
			if r := perDone(beside.NaiveRefused, beside.NaiveDone); beside.NaiveDone != besideRequests || r < 1 {
				t.Errorf("the naive one: %d done, %.2f refused per success", beside.NaiveDone, r)
			}
			if ours.Took > 15*time.Second {
				t.Errorf("ours, together: over in %v only", ours.Took)
			}
			if ours.Spike > 100 || apart.Spike > 300 {
				t.Errorf("spikes of %d and %d", ours.Spike, apart.Spike)
			}
			if r := runs["naive"]; r.RefusedPerDone() < 10 || r.Spike < 500 {
				t.Errorf("naive: %.2f refused per success, a spike of %d", r.RefusedPerDone(), r.Spike)
			}
			for _, name := range []string{"naive", "as told", "backoff"} {
				if r := runs[name]; apart.RefusedPerDone() >= r.RefusedPerDone() {
					t.Errorf("ours, apart: %.2f refused per success, %s %.2f", apart.RefusedPerDone(), name, r.RefusedPerDone())
				}
			}
		})
	}
}

// The same flags give the same numbers, and another seed gives others.
func TestCrowdIsRepeatable(t *testing.T) {
	written := func(seed uint64) string {
		crowd := crowdOf(t, comporta.TokenBucket, 200)
		crowd.Seed, crowd.Requests = seed, 3
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

// A crowd that nobody can serve ends all the same, and says so.
func TestCrowdEnds(t *testing.T) {
	limit, err := comporta.ParseLimit("0/s")
	if err != nil {
		t.Fatal(err)
	}
	report, err := Crowd{Limit: limit, Clients: 1000}.Play()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Runs {
		if !r.Given || r.Done != 0 {
			t.Errorf("%s: given up %v, %d done", r.name(), r.Given, r.Done)
		}
	}
}

func TestCrowdRefusesNonsense(t *testing.T) {
	good := crowdOf(t, comporta.TokenBucket, 10)
	for name, spoil := range map[string]func(*Crowd){
		"no clients":        func(c *Crowd) { c.Clients = 0 },
		"too many clients":  func(c *Crowd) { c.Clients = mostClients + 1 },
		"too many requests": func(c *Crowd) { c.Requests = mostAttempts },
		"negative latency":  func(c *Crowd) { c.Latency = -1 },
		"no limit":          func(c *Crowd) { c.Limit = comporta.Limit{Unlimited: true} },
		"a broken limit":    func(c *Crowd) { c.Limit.Window = 0 },
	} {
		crowd := good
		spoil(&crowd)
		if _, err := crowd.Play(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
