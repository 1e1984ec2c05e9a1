package sim

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/manners"
)

// A Crowd is many callers of one server that limits them together, on a made-up
// clock: the limit is the real step, and those who behave run the rules of package
// client. The zero fields are one request each, and no time on the way.
type Crowd struct {
	Limit    comporta.Limit
	Clients  int
	Requests int // of each client, one after the other
	// Latency is the time each way, and Jitter what chance adds to it at most.
	Latency, Jitter time.Duration
	Seed            uint64
}

// Manner is one way in which callers behave.
type Manner string

const (
	Naive    Manner = "naive"    // again after 100 ms, whatever the server says
	AsTold   Manner = "as told"  // exactly after Retry-After
	Backoff  Manner = "backoff"  // exponential with full jitter, reading nothing
	Apart    Manner = "apart"    // package client, each in a process of its own
	Together Manner = "together" // package client, all in one process
)

// crowdManners are all, in the order of the report.
var crowdManners = []struct {
	of   Manner
	says string
}{
	{Naive, "try again after 100 ms, whatever the server says"},
	{AsTold, "wait exactly as long as Retry-After says"},
	{Backoff, "back off exponentially with full jitter, and read nothing"},
	{Apart, "package client, each in a process of its own"},
	{Together, "package client, all through one Transport"},
}

// A CrowdReport is what became of each kind of caller.
type CrowdReport struct {
	Crowd Crowd
	Runs  []*CrowdRun
}

// A CrowdRun is a crowd of one manner, with or without a naive client beside it.
type CrowdRun struct {
	Manner Manner
	Says   string
	Beside bool // a naive client is beside them
	// Sent and Refused count attempts of the crowd; Done its requests that passed, by
	// Took at last. Given is true where the run was ended before all had passed.
	Sent, Refused, Done int
	Took                time.Duration
	Given               bool
	// Median and P99 of the time from the wish to the answer.
	Median, P99 time.Duration
	// Spike is the most attempts in any 100 ms, once the first half second is over.
	Spike int
	// NaiveSent, NaiveRefused and NaiveDone are those of the one beside.
	NaiveSent, NaiveRefused, NaiveDone int

	came []came
}

// came is an attempt that reached the server.
type came struct {
	at      time.Duration
	allowed bool
}

const (
	// mostAttempts ends a run in which they hammer without end.
	mostAttempts = 300_000
	mostClients  = 100_000
	naiveWait    = 100 * time.Millisecond
	// besideRequests are what the naive client beside ours wants, all at once.
	besideRequests = 200
	spikeFrom      = 500 * time.Millisecond
	spikeIn        = 100 * time.Millisecond
)

// Play runs each manner by itself, and ours with a naive client beside them.
func (c Crowd) Play() (*CrowdReport, error) {
	rule, err := c.Limit.Compile()
	if err != nil {
		return nil, err
	}
	c.Requests = max(c.Requests, 1)
	switch {
	case c.Clients < 1 || c.Clients > mostClients || c.Requests > mostAttempts/c.Clients:
		return nil, fmt.Errorf("clients: from 1 to %d, with at most %d requests together", mostClients, mostAttempts)
	case c.Latency < 0 || c.Jitter < 0 || c.Latency+c.Jitter > time.Minute:
		return nil, errors.New("latency: from 0 to a minute")
	case c.Limit.Unlimited || c.Limit.Calendar != nil:
		return nil, errors.New("the limit: a crowd needs one with a window, such as 100/s")
	}
	report := &CrowdReport{Crowd: c}
	for _, m := range crowdManners {
		run := &CrowdRun{Manner: m.of, Says: m.says}
		newCrowdPlay(c, rule, run).play()
		report.Runs = append(report.Runs, run)
	}
	beside := &CrowdRun{Manner: Together, Says: fmt.Sprintf("while a naive one sends %d at once, and again", besideRequests), Beside: true}
	newCrowdPlay(c, rule, beside).play()
	report.Runs = append(report.Runs, beside)
	return report, nil
}

// RefusedPerDone is how many attempts were refused for each that passed.
func (r *CrowdRun) RefusedPerDone() float64 { return perDone(r.Refused, r.Done) }

func perDone(refused, done int) float64 { return float64(refused) / float64(max(done, 1)) }

// crowdPlay is one run as it goes on.
type crowdPlay struct {
	Crowd
	rule   *comporta.Rule
	cell   comporta.Cell
	log    comporta.Entries
	run    *CrowdRun
	config *manners.Config
	chance *rand.Rand

	now    time.Time
	events crowdEvents
	order  int

	shared *crowdLane
	wishes int
	waits  []time.Duration
}

// crowdBegan is time 0, at the start of a window of any length.
var crowdBegan = time.Unix(0, 0)

func newCrowdPlay(c Crowd, rule *comporta.Rule, run *CrowdRun) *crowdPlay {
	p := &crowdPlay{Crowd: c, rule: rule, run: run, chance: rand.New(rand.NewPCG(c.Seed, 1)), now: crowdBegan}
	p.config = &manners.Config{
		Attempts: math.MaxInt, MaxWait: 24 * time.Hour, Percent: -1,
		Backoff: manners.Backoff{Base: 500 * time.Millisecond, Cap: 30 * time.Second}, Random: p.chance.Float64,
	}
	return p
}

func (p *crowdPlay) play() {
	if p.run.Manner == Together {
		p.shared = p.lane()
	}
	for i := range p.Clients {
		client := &crowdClient{play: p, number: i, left: p.Requests, lane: p.shared}
		if p.run.Manner == Apart {
			client.lane = p.lane()
		}
		client.wish()
	}
	if p.run.Beside {
		for range besideRequests {
			(&crowdClient{play: p, number: -1, left: 1}).wish()
		}
	}
	for len(p.events) > 0 && p.run.Done < p.Clients*p.Requests {
		if len(p.run.came) >= mostAttempts {
			p.run.Given = true
			break
		}
		e := heap.Pop(&p.events).(crowdEvent)
		p.now = e.at
		e.do()
	}
	slices.Sort(p.waits)
	if n := len(p.waits); n > 0 {
		p.run.Median, p.run.P99 = p.waits[n/2], p.waits[min(n*99/100, n-1)]
	}
	p.run.Spike = spike(p.run.came)
}

// after does something later.
func (p *crowdPlay) after(d time.Duration, do func()) {
	p.order++
	heap.Push(&p.events, crowdEvent{p.now.Add(d), p.order, do})
}

// way is the time one way.
func (p *crowdPlay) way() time.Duration {
	return p.Latency + time.Duration(p.chance.Float64()*float64(p.Jitter))
}

// decide is the server.
func (p *crowdPlay) decide() comporta.Decision {
	takes := []comporta.Take{{Key: comporta.Key{Limit: "crowd"}, Rule: p.rule, Cost: 1}}
	cells, out := []comporta.Cell{p.cell}, make([]comporta.Taken, 1)
	cells[0].Edit, cells[0].Changed, cells[0].Log = comporta.Edit{}, false, p.log
	comporta.AdvanceAll(takes, cells, comporta.InstantOf(p.now), out)
	p.cell = cells[0]
	p.log = p.log.Apply(p.cell.Edit)
	return out[0].Decision
}

// spike is the most attempts in any spikeIn from spikeFrom on.
func spike(all []came) (most int) {
	first := 0
	for i := range all {
		for all[first].at < spikeFrom && first < i || all[i].at-all[first].at >= spikeIn {
			first++
		}
		if all[i].at >= spikeFrom {
			most = max(most, i-first+1)
		}
	}
	return most
}

// crowdEvents are what will happen, the next first.
type crowdEvents []crowdEvent

type crowdEvent struct {
	at    time.Time
	order int
	do    func()
}

func (e crowdEvents) Len() int      { return len(e) }
func (e crowdEvents) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e crowdEvents) Less(i, j int) bool {
	if !e[i].at.Equal(e[j].at) {
		return e[i].at.Before(e[j].at)
	}
	return e[i].order < e[j].order
}
func (e *crowdEvents) Push(x any) { *e = append(*e, x.(crowdEvent)) }
func (e *crowdEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
