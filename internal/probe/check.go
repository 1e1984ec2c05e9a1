package probe

import (
	"context"
	"errors"
	"strings"
	"time"
)

// A Verdict is what a check found.
type Verdict string

const (
	Good    Verdict = "ok"
	Bad     Verdict = "bad"
	Warn    Verdict = "warning"
	Unknown Verdict = "unknown"
)

// A Check is one question about an API's limits, and the answer.
type Check struct {
	Name    string // for machines, such as retry-after
	Asks    string // the question, for people
	Verdict Verdict
	Seen    string // what was seen
	Todo    string // what to do about it; "" where there is nothing
}

// Options say what is probed, and how far.
type Options struct {
	Target Target
	Budget Budget
	// Sender is the HTTP one where it is nil.
	Sender Sender
	// Quick is without the checks that wait: only what the limit is.
	Quick bool
	// Expect is the contract; nil is none.
	Expect *Contract
	// Progress is told of what goes on; it may be nil.
	Progress func(doing string, shot *Shot)
}

// A Report is what a probe found.
type Report struct {
	Target   Target
	Budget   Budget
	Began    time.Time
	Took     time.Duration
	Requests int
	Finding  *Finding
	Checks   []Check
	Shots    []Shot
	// Ended says why the probe ended before it was through; "" where it did not.
	Ended string
}

// Kept says whether a contract was kept: each of its checks is answered, and well.
func (r *Report) Kept() bool {
	for _, c := range r.Checks {
		if strings.HasPrefix(c.Name, "expect-") && c.Verdict != Good {
			return false
		}
	}
	return true
}

// Failed says whether anything is bad.
func (r *Report) Failed() bool {
	for _, c := range r.Checks {
		if c.Verdict == Bad {
			return true
		}
	}
	return false
}

// Run probes an API. The report has what was found, even where the budget or the
// server ended it early; an error is that of ctx.
func Run(ctx context.Context, o Options) (*Report, error) {
	p := &prober{ctx: ctx, options: o, report: &Report{Target: o.Target, Budget: o.Budget, Began: now()}}
	if o.Sender == nil {
		o.Sender = NewSender(o.Target, nil)
	}
	p.session = NewSession(o.Sender, o.Budget, func(s Shot) { p.tell(&s) })
	p.tell(nil)
	err := p.run()
	r := p.report
	r.Took, r.Shots = now().Sub(r.Began), p.session.Shots()
	r.Requests = len(r.Shots)
	if o.Expect != nil {
		r.Checks = append(r.Checks, o.Expect.check(r.Finding)...)
	}
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		r.Ended = err.Error()
	}
	return r, nil
}

// A prober runs the checks, one after the other.
type prober struct {
	ctx     context.Context
	options Options
	session *Session
	report  *Report
	doing   string
}

func (p *prober) tell(s *Shot) {
	if p.options.Progress != nil {
		p.options.Progress(p.doing, s)
	}
}

// checks are all questions, in the order in which they are asked: those first that
// need no further request.
var checks = []struct {
	name, asks string
	slow       bool // it needs requests, and may wait
	ask        func(p *prober) (Check, error)
}{
	{"refusal", "Does a refusal say what it is?", false, (*prober).refusal},
	{"headers", "In which forms are limits told?", false, (*prober).headers},
	{"remaining", "Does Remaining tell the truth?", false, (*prober).remaining},
	{"boundary", "Can a client get double the limit around a boundary?", false, (*prober).boundary},
	{"denials", "Do denied requests count?", false, (*prober).denials},
	{"retry-after", "Does Retry-After tell the truth?", true, (*prober).retryAfter},
	{"reset", "Does Reset tell the truth?", true, (*prober).reset},
	{"isolation", "Does one client's use leave the other's alone?", true, (*prober).isolation},
	{"cors", "May a browser read refusals, and ask beforehand?", true, (*prober).cors},
	{"addresses", "Does a forged address get past the limit?", true, (*prober).addresses},
	{"paths", "Does another spelling of the path get past the limit?", true, (*prober).paths},
	{"keys", "Does a made-up key get past the limit?", true, (*prober).keys},
	{"methods", "Do HEAD and OPTIONS get past the limit?", true, (*prober).methods},
	{"concurrency", "Does the limit hold when all come at once?", true, (*prober).concurrency},
	{"instances", "Do all instances share the limit?", true, (*prober).instances},
}

func (p *prober) run() error {
	p.doing = "finding the limit"
	finding, err := Learn(p.ctx, p.session)
	p.report.Finding = finding
	for _, c := range checks {
		check := Check{Name: c.name, Asks: c.asks, Verdict: Unknown}
		switch {
		case !finding.Limited:
			check.Seen = "no limit was met"
		case c.slow && p.options.Quick:
			continue
		case c.slow && err != nil:
			check.Seen = "not tried: " + err.Error()
		default:
			p.doing = c.name
			answer, failed := c.ask(p)
			answer.Name, answer.Asks = c.name, c.asks
			check = answer
			if failed != nil {
				check.Verdict, check.Seen = Unknown, "not finished: "+failed.Error()
				if err == nil {
					err = failed
				}
			}
		}
		p.report.Checks = append(p.report.Checks, check)
	}
	return err
}

// over says whether an error ended the session, and not just a check.
var errUnsettled = errors.New("the limit could not be used up: others may use it, too, or it gives back too quickly")

// exhaust uses up what the first identity has, until a request is denied: with r as
// the request, the zero one where it is nil. It is the denied shot.
func (p *prober) exhaust() (Shot, error) {
	most := int(p.report.Finding.Burst.High+p.report.Finding.Units.High)*2 + 10
	for n := 1; most > 0; n = min(2*n, 200) {
		shots, err := p.session.Volley(p.ctx, min(n, most), nil)
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
