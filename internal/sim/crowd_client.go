package sim

import (
	"slices"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/manners"
)

// manner is a way in which callers behave when they are refused.
type manner uint8

const (
	naive    manner = iota // again after naiveWait
	told                   // again exactly after Retry-After
	backoff                // exponential with full jitter
	apart                  // as package client, each in a process of its own
	together               // as package client, all through one Transport
)

const naiveWait = 100 * time.Millisecond

// A crowdClient wants its requests answered, one after the other.
type crowdClient struct {
	run    *crowdRun
	party  *Party
	manner manner
	lane   *crowdLane // of those with manners
	left   int        // requests

	place    int // of its request among all, in the order in which they were wanted
	wanted   comporta.Instant
	attempts int
	prev     time.Duration
}

// want begins the next request.
func (c *crowdClient) want() {
	if c.left == 0 {
		return
	}
	c.left--
	c.run.wishes++
	c.place, c.wanted, c.attempts, c.prev = c.run.wishes, c.run.now, 0, 0
	c.enter()
}

// enter sends an attempt: at once, or in its turn.
func (c *crowdClient) enter() {
	if c.lane == nil {
		c.send(manners.Sent{})
		return
	}
	c.lane.join(c)
}

// send is an attempt on its way to the server and back.
func (c *crowdClient) send(sent manners.Sent) {
	r := c.run
	c.attempts++
	r.after(r.way(), func() {
		allowed, delay, answer := r.serve(c.party)
		r.after(delay+r.way(), func() { c.back(sent, allowed, &answer) })
	})
}

// back takes the server's answer.
func (c *crowdClient) back(sent manners.Sent, allowed bool, a *manners.Answer) {
	if c.lane != nil {
		c.lane.back(sent, a)
	}
	if allowed {
		c.party.succeed(c.run.passed(), c.run.now.Sub(c.wanted))
		c.want()
		return
	}
	c.prev = c.wait(a)
	c.run.after(c.prev, c.enter)
}

// wait is how long it waits after a refusal.
func (c *crowdClient) wait(a *manners.Answer) time.Duration {
	config := c.run.config
	switch c.manner {
	case naive:
		return naiveWait
	case told:
		return a.Wait
	case backoff:
		return config.Backoff.Wait(c.attempts, c.prev, config.Random)
	}
	try := manners.Try{Attempts: c.attempts, Prev: c.prev, Repeat: true, Resend: true}
	wait, _ := c.lane.Next(c.run.now.Time(), &try, a) // it always comes again: see config
	return wait
}

// A crowdLane is a lane with those who wait in it, as package client has it: the
// first in line asks when it may leave.
type crowdLane struct {
	*manners.Lane
	run     *crowdRun
	line    []*crowdClient
	looking comporta.Instant // when the first looks again
}

func (r *crowdRun) lane() *crowdLane {
	return &crowdLane{Lane: manners.NewHost(r.config).Lane(), run: r}
}

// join stands in line by the order of the wishes, so that a retry stands where it
// stood before.
func (l *crowdLane) join(c *crowdClient) {
	at := len(l.line)
	for at > 0 && l.line[at-1].place > c.place {
		at--
	}
	l.line = slices.Insert(l.line, at, c)
	l.leave()
}

func (l *crowdLane) back(sent manners.Sent, a *manners.Answer) {
	l.Back(l.run.now.Time(), sent, a)
	l.leave()
}

// leave lets those go whose turn it is, and looks again when the next one's comes.
func (l *crowdLane) leave() {
	r := l.run
	for len(l.line) > 0 {
		now := r.now.Time()
		if wait := l.Ready(now).At.Sub(now); wait > 0 {
			at := r.now.Add(wait + time.Microsecond - 1)
			if l.looking <= r.now || at < l.looking {
				l.looking = at
				r.at(at, l.leave)
			}
			return
		}
		first := l.line[0]
		l.line = l.line[1:]
		first.send(l.Leave(now, first.attempts > 0))
	}
}
