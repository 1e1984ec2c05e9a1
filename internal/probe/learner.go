package probe

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

// A learner is one run of [Learn]: what it sent, and what came back until now.
type learner struct {
	s      *Session
	ctx    context.Context
	cancel context.CancelFunc
	begun  time.Time
	budget int // requests at the beginning

	way     sync.WaitGroup
	arrived chan struct{} // holds one where something came since it was last looked at

	mu      sync.Mutex
	volleys []*volley
	slowest time.Duration // what the first answer took

	most int // units that the first exhaustion took
	// What the last search found, in how many groups, and what the next begins with.
	found    []search
	groups   int
	searches int
	seeds    []model
}

// A volley was sent at once. What has not come back yet is in no field.
type volley struct {
	sent    time.Time
	n, back int
	denied  int
	shots   []Shot
}

func newLearner(ctx context.Context, s *Session) *learner {
	ctx, cancel := context.WithCancel(ctx)
	return &learner{s: s, ctx: ctx, cancel: cancel, begun: now(), budget: s.Left().Requests, arrived: make(chan struct{}, 1)}
}

// end calls back what is on its way and waits for it.
func (l *learner) end() {
	l.cancel()
	l.way.Wait()
}

// fire sends n at once, as far as the budget reaches, and does not wait.
func (l *learner) fire(n int) (*volley, error) {
	v := &volley{sent: now()}
	for range n {
		order, err := l.s.spend(l.ctx)
		if err != nil {
			l.keep(v)
			return v, err
		}
		v.n++
		l.way.Go(func() {
			shot, _ := l.s.send(l.ctx, nil, order)
			if shot.Status == 0 && l.ctx.Err() != nil {
				return // called back
			}
			l.mu.Lock()
			v.back++
			v.shots = append(v.shots, shot)
			if shot.Denied() {
				v.denied++
			}
			l.mu.Unlock()
			select {
			case l.arrived <- struct{}{}:
			default:
			}
		})
	}
	l.keep(v)
	return v, nil
}

func (l *learner) keep(v *volley) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.n > 0 {
		l.volleys = append(l.volleys, v)
	}
}

// patience is how long an answer may take before it counts as held back.
func (l *learner) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slowest == 0 {
		return 10 * time.Second
	}
	return 2*l.slowest + 150*time.Millisecond
}

// await waits until all of a volley are back or patience is over.
func (l *learner) await(v *volley) error {
	patience := time.NewTimer(l.patience())
	defer patience.Stop()
	for {
		l.mu.Lock()
		done := v.back == v.n
		if done && l.slowest == 0 {
			l.slowest = now().Sub(v.sent) // the very first: nothing can hold it back
		}
		l.mu.Unlock()
		if done {
			break
		}
		select {
		case <-l.arrived:
			continue
		case <-patience.C:
		case <-l.ctx.Done():
			return l.ctx.Err()
		}
		break
	}
	return l.s.over()
}

// shoot fires n and awaits them.
func (l *learner) shoot(n int) (*volley, error) {
	v, err := l.fire(n)
	if err := errors.Join(err, l.await(v)); err != nil {
		return v, err
	}
	return v, nil
}

// answers are how many of a volley were admitted and denied so far; the rest are
// held back or lost.
func (l *learner) answers(v *volley) (admitted, denied int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range v.shots {
		if v.shots[i].Admitted() {
			admitted++
		}
	}
	return admitted, v.denied
}

// evidence is what is known now.
func (l *learner) evidence() *evidence {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]flight, 0, len(l.volleys))
	for _, v := range l.volleys {
		all = append(all, flight{sent: v.sent, shots: slices.Clone(v.shots), pending: v.n - v.back})
	}
	return newEvidence(all, l.begun)
}

func (l *learner) elapsed() float64 { return now().Sub(l.begun).Seconds() }

// until sleeps until so many seconds since the beginning.
func (l *learner) until(at float64) error {
	return l.s.Sleep(l.ctx, time.Duration((at-l.elapsed())*float64(time.Second)))
}

// ramp sends volleys that grow until one is denied, no more than most in all.
func (l *learner) ramp(first, most int, by float64) (sent int, denied bool, err error) {
	for n := first; sent < most; n = int(math.Ceil(float64(n) * by)) {
		n = min(n, most-sent)
		v, err := l.shoot(n)
		sent += v.n
		_, d := l.answers(v)
		if d > 0 || err != nil {
			return sent, d > 0, err
		}
	}
	return sent, false, nil
}

// forget leaves all that was seen until now out of the evidence.
func (l *learner) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.volleys = nil
}
