package sim

import (
	"slices"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/manners"
)

// A crowdClient wants its requests answered, one after the other. Number −1 is
// the naive one beside the crowd.
type crowdClient struct {
	play     *crowdPlay
	number   int
	left     int
	lane     *crowdLane // nil for those without manners
	attempts int
	prev     time.Duration
	place    int // of its request, among all
	wished   time.Time
}

// wish begins the next request.
func (c *crowdClient) wish() {
	if c.left == 0 {
		return
	}
	c.left--
	c.play.wishes++
	c.place = c.play.wishes
	c.attempts, c.prev, c.wished = 0, 0, c.play.now
	c.enter()
}

// enter sends the next attempt, in line where there is one.
func (c *crowdClient) enter() {
	if c.lane == nil {
		c.send(manners.Sent{})
		return
	}
	c.lane.join(c)
}

// send is an attempt on its way to the server and back.
func (c *crowdClient) send(sent manners.Sent) {
	p := c.play
	c.attempts++
	p.after(p.way(), func() {
		d := p.decide()
		p.run.came = append(p.run.came, came{p.now.Sub(crowdBegan), d.Allowed})
		switch {
		case c.number < 0:
			p.run.NaiveSent++
			if !d.Allowed {
				p.run.NaiveRefused++
			}
		default:
			p.run.Sent++
			if !d.Allowed {
				p.run.Refused++
			}
		}
		p.after(d.Delay+p.way(), func() { c.back(sent, d) })
	})
}

// back is the server's answer.
func (c *crowdClient) back(sent manners.Sent, d comporta.Decision) {
	p := c.play
	answer := told(p.rule, d)
	if c.lane != nil {
		c.lane.back(sent, &answer)
	}
	if d.Allowed {
		if c.number < 0 {
			p.run.NaiveDone++
		} else {
			p.run.Done++
			p.run.Took = p.now.Sub(crowdBegan)
			p.waits = append(p.waits, p.now.Sub(c.wished))
		}
		c.wish()
		return
	}
	wait := c.wait(&answer)
	c.prev = wait
	p.after(wait, c.enter)
}

// wait is how long this kind of caller waits after a refusal.
func (c *crowdClient) wait(a *manners.Answer) time.Duration {
	p := c.play
	switch {
	case c.lane != nil:
		try := manners.Try{Attempts: c.attempts, Prev: c.prev, Repeat: true, Resend: true}
		wait, _ := c.lane.Next(p.now, &try, a) // attempts and budget are without end here
		return wait
	case c.number < 0 || p.run.Manner == Naive:
		return naiveWait
	case p.run.Manner == AsTold:
		return a.Wait
	}
	return p.config.Backoff.Wait(c.attempts, c.prev, p.config.Random)
}

// told is what the gateway says with a decision: times in whole seconds, rounded
// up, and at least one where it refuses.
func told(rule *comporta.Rule, d comporta.Decision) manners.Answer {
	up := func(d time.Duration) time.Duration {
		return (min(d, 24*time.Hour) + time.Second - 1).Truncate(time.Second) // Never, too
	}
	limit := rule.Limit()
	a := manners.Answer{Retryable: true, Hints: []manners.Hint{{
		Limit: d.Limit, Remaining: d.Remaining, Reset: up(d.ResetAfter), Window: up(limit.Window),
	}}}
	if !d.Allowed {
		a.Kind, a.Told, a.Wait = manners.Refused, true, max(up(d.RetryAfter), time.Second)
		a.Hints[0].Reset = max(a.Hints[0].Reset, a.Wait)
	}
	return a
}

// A crowdLane is a lane with those who wait in it, as package client has it: the
// first in line asks when it may leave.
type crowdLane struct {
	*manners.Lane
	play    *crowdPlay
	line    []*crowdClient
	looking time.Time // when the first looks again
}

func (p *crowdPlay) lane() *crowdLane {
	return &crowdLane{Lane: manners.NewHost(p.config).Lane(), play: p}
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
	l.Back(l.play.now, sent, a)
	l.leave()
}

// leave lets those go whose turn it is, and looks again when the next one's comes.
func (l *crowdLane) leave() {
	for len(l.line) > 0 {
		turn := l.Ready(l.play.now)
		if wait := turn.At.Sub(l.play.now); wait > 0 {
			if l.looking.After(l.play.now) && !turn.At.Before(l.looking) {
				return
			}
			l.looking = turn.At
			l.play.after(wait, l.leave)
			return
		}
		first := l.line[0]
		l.line = l.line[1:]
		first.send(l.Leave(l.play.now, first.attempts > 0))
	}
}
