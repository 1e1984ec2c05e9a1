package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/manners"
)

// crowdRun is one run as it goes on.
type crowdRun struct {
	Crowd
	schedule
	rule    *comporta.Rule
	counted key // all callers are one client to the limit
	config  *manners.Config
	chance  *rand.Rand
	parties []*Party

	attempts, wishes int
	opens            time.Duration
	opened           bool // opens is known
}

func newCrowdRun(c Crowd, rule *comporta.Rule, opens time.Duration) *crowdRun {
	r := &crowdRun{Crowd: c, rule: rule, chance: rand.New(rand.NewPCG(c.Seed, 1)), opens: opens, opened: opens > 0}
	// The defaults of package client, but that the work must be done: no attempt is the
	// last, no wait too long, no retry too many.
	r.config = &manners.Config{
		Attempts: math.MaxInt, MaxWait: math.MaxInt64, Percent: -1,
		Backoff: manners.Backoff{Base: 500 * time.Millisecond, Cap: 30 * time.Second}, Random: r.chance.Float64,
	}
	return r
}

func (r *crowdRun) party(name, says string, clients int) *Party {
	p := &Party{Name: name, Says: says, Clients: clients, wanted: r.Clients * r.Requests, bars: crowdBars{step: crowdStep}}
	r.parties = append(r.parties, p)
	return p
}

// invite lets the clients of a party begin.
func (r *crowdRun) invite(p *Party, m manner) {
	var shared *crowdLane
	if m == together {
		shared = r.lane()
	}
	for range r.Clients {
		c := &crowdClient{run: r, party: p, manner: m, left: r.Requests, lane: shared}
		if m == apart {
			c.lane = r.lane()
		}
		r.after(time.Duration(r.chance.Float64()*float64(r.StartWithin)), c.want)
	}
}

// play goes on until all is answered, or it has become too much.
func (r *crowdRun) play() {
	for r.wanting() {
		if r.attempts >= r.most || r.passed() > mostTime {
			for _, p := range r.parties {
				p.Stopped = p.Successes < p.wanted
			}
			break
		}
		r.next()
	}
	for _, p := range r.parties {
		p.lasted = r.passed()
		p.finish()
	}
}

func (r *crowdRun) wanting() bool {
	return slices.ContainsFunc(r.parties, func(p *Party) bool { return p.Successes < p.wanted })
}

// passed is the time since the start.
func (r *crowdRun) passed() time.Duration { return r.now.Sub(0) }

// after plans something, in whole microseconds, and never early.
func (r *crowdRun) after(d time.Duration, do func()) {
	r.at(r.now.Add(max(d, 0)+time.Microsecond-1), do)
}

// way is the time one way.
func (r *crowdRun) way() time.Duration {
	return r.Latency + time.Duration((2*r.chance.Float64()-1)*float64(r.Jitter))
}

// serve is the server: it decides on an attempt of a party.
func (r *crowdRun) serve(p *Party) (allowed bool, delay time.Duration, a manners.Answer) {
	d := r.counted.take(r.rule, r.now, 1).Decision
	a = say(r.rule, r.now, &d)
	if !d.Allowed && !r.opened {
		// Those before it came to an open limit: they are no spike after it opens.
		r.opens, r.opened = r.passed()+a.Wait, true
		for _, p := range r.parties {
			p.spike = spike{}
		}
	}
	r.attempts++
	p.Sent++
	if !d.Allowed {
		p.Refused++
	}
	p.bars.add(r.passed(), d.Allowed)
	if !r.opened || r.passed() >= r.opens {
		p.spike.add(r.passed())
	}
	return d.Allowed, d.Delay, a
}

// say is what the gateway says with a decision: times in whole seconds, rounded
// up; a Retry-After of at least one, and a reset that is not after it; a window
// that is shorter than a second not at all.
func say(rule *comporta.Rule, now comporta.Instant, d *comporta.Decision) manners.Answer {
	up := func(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
	h := manners.Hint{Limit: rule.Full(), Remaining: d.Remaining, Reset: up(rule.SpreadAfter(d)), Window: -1}
	if w := rule.WindowAt(now); w >= time.Second {
		h.Window = up(w)
	}
	a := manners.Answer{Retryable: true}
	if !d.Allowed {
		a.Kind, a.Told, a.Wait = manners.Refused, true, max(up(d.RetryAfter), time.Second)
		h.Reset = min(h.Reset, a.Wait)
	}
	a.Hints = []manners.Hint{h}
	return a
}
