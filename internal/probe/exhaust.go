package probe

import (
	"errors"
	"slices"
	"time"

	"github.com/comporta/comporta"
)

// errUnsettled ends a check, and not the session.
var errUnsettled = errors.New("the limit could not be used up: others may use it, too, or it gives back too quickly")

// exhaust uses up what the first identity has, until a request is denied: with r as
// the request, the user's own where it is nil. It is the denied shot.
func (p *prober) exhaust(r *Request) (Shot, error) {
	most := int(p.report.Finding.Burst.High+p.report.Finding.Units.High)*2 + 10
	for n := 1; most > 0; n = min(2*n, 200) {
		shots, err := p.hold(min(n, most), r, true)
		for i := len(shots) - 1; i >= 0; i-- {
			if shots[i].Denied() {
				return shots[i], err
			}
		}
		if err != nil {
			return Shot{}, err
		}
		most -= n
	}
	return Shot{}, errUnsettled
}

// hold sends n at once and gives those answers that come as soon as refusals do: what
// passes may be held back, by a queue that is empty again once all are waited for, or
// by what is slow behind the limit. With denial it waits for no more once one is denied.
func (p *prober) hold(n int, r *Request, denial bool) (shots []Shot, err error) {
	back := make(chan Shot, n)
	for range n {
		order, err := p.session.spend(p.ctx)
		if err != nil {
			return shots, err
		}
		p.held.Go(func() {
			shot, _ := p.session.send(p.ctx, r, order) // what ends the session, the next one learns
			back <- shot
		})
	}
	wait := 3*p.trip() + 0.1
	if p.leaks() { // meanwhile there is room again
		wait = 2*p.trip() + 0.02
	}
	patience := time.NewTimer(time.Duration(wait * float64(time.Second)))
	defer patience.Stop()
	for len(shots) < n {
		select {
		case shot := <-back:
			if shots = append(shots, shot); denial && shot.Denied() {
				return shots, p.session.over()
			}
		case <-patience.C:
			return shots, p.session.over()
		case <-p.ctx.Done():
			return shots, p.ctx.Err()
		}
	}
	return shots, p.session.over()
}

// refill waits until the first identity's budget is full again.
func (p *prober) refill() error {
	f := p.report.Finding
	full := f.Window.High
	if f.Limit.Algorithm.Bucket() && f.Units.Low > 0 {
		full = max(full, f.Burst.High/f.Units.Low*f.Window.High)
	}
	return p.session.Sleep(p.ctx, time.Duration((full*1.05+0.2)*float64(time.Second)))
}

// capacity is what is admitted at once, at most.
func (p *prober) capacity() int {
	f := p.report.Finding
	if f.Limit.Algorithm.Bucket() {
		return int(f.Burst.High)
	}
	return int(f.Units.High)
}

// givesBack is how many units come back in so many seconds, at most.
func (p *prober) givesBack(seconds float64) float64 {
	f := p.report.Finding
	return seconds * f.Units.High / max(f.Window.Low, 1e-9)
}

// leaks says that what is admitted is held back.
func (p *prober) leaks() bool { return p.report.Finding.Limit.Algorithm == comporta.LeakyBucket }

// trip is how long most refusals took, in seconds: what passes may take longer than
// the way and the decision.
func (p *prober) trip() float64 {
	var took, refused []float64
	for _, s := range p.shots() {
		if s.Status == 0 {
			continue
		}
		took = append(took, s.Received.Sub(s.Sent).Seconds())
		if s.Denied() {
			refused = append(refused, took[len(took)-1])
		}
	}
	if len(refused) >= 5 {
		took = refused
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*9/10]
}

// A way is what a request does while the user's own is refused.
type way int

const (
	inside   way = iota // it is refused, too
	outside             // it has nothing to do with that limit
	tooQuick            // it gives back too quickly to tell
)

// attempts is how often one way is tried before it is called too quick, and agreeing
// how often it must turn out to be outside: one unit may come back just then.
const (
	attempts = 6
	agreeing = 2
)

// mostAside bounds the requests of one try.
const mostAside = 30

// aside asks in another way while the user's own is refused: some more than may come
// back meanwhile, all at once. If all pass, and the user's own is still refused, they
// are outside. It is one of the answers, a refusal where there is one.
func (p *prober) aside(r *Request) (way, Shot, error) {
	n := 2 + int(2*p.givesBack(2*p.trip()+0.005))
	if n > mostAside || n > max(2, p.capacity()) { // or what is outside would run out, too
		return tooQuick, Shot{}, nil
	}
	agreed, answer := 0, Shot{}
	for range attempts {
		if _, err := p.exhaust(nil); err != nil {
			return tooQuick, Shot{}, err
		}
		shots, err := p.soon(n, r)
		if err != nil {
			return tooQuick, Shot{}, err
		}
		denied, lost, refusal := 0, 0, Shot{}
		for _, s := range shots {
			switch {
			case s.Denied():
				denied, refusal = denied+1, s
			case s.Status == 0:
				lost++
			}
		}
		switch {
		case denied > 1 && agreed > 0 && answer.Status != 0: // it has a limit of its own, and has used that up
			return outside, answer, nil
		case denied > 1:
			return inside, refusal, nil
		}
		if denied > 0 || lost > 0 {
			continue
		}
		if len(shots) > 0 { // else all are held back: let in, but it is not seen as what
			answer = shots[0]
		}
		control, err := p.soon(1, nil)
		if err != nil {
			return tooQuick, Shot{}, err
		}
		if len(control) == 0 || !control[0].Denied() {
			continue // it gave back meanwhile
		}
		if agreed++; agreed >= agreeing && answer.Status != 0 {
			return outside, answer, nil
		}
	}
	return tooQuick, Shot{}, nil
}

// soon sends n at once, and waits for all answers that are not held back.
func (p *prober) soon(n int, r *Request) ([]Shot, error) {
	if p.leaks() {
		return p.hold(n, r, false)
	}
	return p.session.Volley(p.ctx, n, r)
}
