package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/comporta/comporta"
)

// A Crowd is many callers of one server that limits them together, on a made-up
// clock: the limit is the real step, and those who behave run the rules of package
// client.
type Crowd struct {
	Limit   comporta.Limit
	Clients int
	// Requests are what each client wants answered, one after the other; 0 is 1.
	Requests int
	// StartWithin spreads the beginnings evenly by chance over a time; 0 is all at
	// once.
	StartWithin time.Duration
	// Each way takes Latency, and by chance up to Jitter more or less.
	Latency, Jitter time.Duration
	Seed            uint64

	most int // attempts in a run; 0 is mostAttempts
}

const (
	// mostAttempts ends a run of those who hammer without end, and mostTime one of a
	// limit that is too small for the crowd.
	mostAttempts = 1_000_000
	mostTime     = 30 * 24 * time.Hour
	mostClients  = 100_000
	longestTrip  = time.Minute
)

// A CrowdReport is what became of each kind of callers.
type CrowdReport struct {
	Crowd Crowd
	// Opens is when the limit opens: when the first that was refused in the first run
	// may come again, by its Retry-After. 0 is that nobody was refused.
	Opens time.Duration
	// Parties are the kinds in order. Each has a run of its own, but for the last, the
	// naive client that is beside the one before it.
	Parties []*Party
}

// A Party is callers of one kind and what became of them.
type Party struct {
	Name, Says string
	Clients    int
	// Sent and Refused count attempts, Successes requests that were answered.
	Sent, Refused, Successes int
	// Took is the time until the last success.
	Took time.Duration
	// Median and P99 are of the time from wanting a request to its answer.
	Median, P99 time.Duration
	// Spike is the most attempts that reach the server within any 100 ms, from Opens on.
	Spike int
	// Stopped is true where the run was ended before all was answered.
	Stopped bool

	wanted int // successes
	lasted time.Duration
	bars   crowdBars
	spike  spike
	waits  []time.Duration
}

// RefusedPerSuccess is how many attempts were refused for each success.
func (p *Party) RefusedPerSuccess() float64 {
	return float64(p.Refused) / float64(max(p.Successes, 1))
}

// kinds are the parties of each run. The first is that whose first refusal tells
// when the limit opens.
var kinds = []struct {
	name, says string
	manner     manner
	beside     bool
}{
	{name: "naive", says: "again after 100 ms, whatever they are told", manner: naive},
	{name: "told", says: "again exactly after Retry-After", manner: told},
	{name: "backoff", says: "exponential with full jitter; no header is read", manner: backoff},
	{name: "ours, apart", says: "package client, a process each", manner: apart},
	{name: "ours, together", says: "package client, one Transport", manner: together},
	{name: "ours, beside", says: "the same, with a naive client beside them", manner: together, beside: true},
}

// Play runs each kind of callers by itself, and ours once more with a naive client
// beside them. It costs time in proportion to the attempts, of which a run has at
// most a million, and for a sliding log times the length of the log.
func (c Crowd) Play() (*CrowdReport, error) {
	rule, err := c.Limit.Compile()
	if err != nil {
		return nil, err
	}
	c.Limit, c.Requests = rule.Limit(), max(c.Requests, 1)
	if c.most == 0 {
		c.most = mostAttempts
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	report := &CrowdReport{Crowd: c}
	for _, k := range kinds {
		run := newCrowdRun(c, rule, report.Opens)
		party := run.party(k.name, k.says, c.Clients)
		report.Parties = append(report.Parties, party)
		run.invite(party, k.manner)
		if k.beside {
			beside := run.party("the naive one", "as much as all of them, as much at a time", 1)
			report.Parties = append(report.Parties, beside)
			run.invite(beside, naive)
		}
		run.play()
		if k.manner == naive {
			report.Opens = run.opens
		}
	}
	return report, nil
}

func (c *Crowd) check() error {
	limit := &c.Limit
	switch {
	case limit.Unlimited || limit.Calendar != nil || limit.Limit == 0 || limit.Window > 24*time.Hour:
		return errors.New("the limit: a crowd needs one that lets some through, with a window of at most a day, such as 100/s")
	case c.Clients < 1 || c.Clients > mostClients:
		return fmt.Errorf("clients: from 1 to %d, not %d", mostClients, c.Clients)
	case c.Requests > c.most/2/c.Clients:
		return fmt.Errorf("requests: at most %d of all clients together, as no run has more than %d attempts", c.most/2, c.most)
	case c.StartWithin < 0 || c.StartWithin > 24*time.Hour:
		return errors.New("the time to start within: from 0 to a day")
	case c.Latency < 0 || c.Latency > longestTrip || c.Jitter < 0:
		return fmt.Errorf("latency and jitter: from 0 to %v", longestTrip)
	case c.Jitter > c.Latency:
		return fmt.Errorf("jitter: at most the latency, which is %v, as nothing arrives before it is sent", c.Latency)
	}
	return nil
}
