package probe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
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
	Seen    string   // what was seen
	Details []string // and of that each part, where there are several
	Why     string   // why it matters; "" where it is good, or unknown
	Todo    string   // what to do about it; "" where there is nothing
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

// The share of the budget that finding the limit may use where checks come after it.
const (
	learnRequests = 0.7
	learnTime     = 0.6
)

// Run probes an API. The report has what was found, even where the budget, the
// server or ctx ended it early; an error is that of ctx.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Sender == nil {
		o.Sender = NewSender(o.Target, nil)
	}
	p := &prober{options: o, report: &Report{Target: o.Target, Budget: o.Budget, Began: now()}}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.ctx = within
	p.watch = watch{ctx: within, options: &p.options, stop: cancel}
	p.tell(nil)
	err := p.run()
	cancel(nil)
	p.held.Wait()
	r := p.report
	r.Took, r.Shots = now().Sub(r.Began), p.shots()
	r.Requests = len(r.Shots)
	r.Checks = slices.Insert(r.Checks, 0, p.watch.check())
	if o.Expect != nil {
		r.Checks = append(r.Checks, o.Expect.check(r.Finding)...)
	}
	if ctx.Err() != nil {
		r.Ended = errInterrupted.Error()
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
	learned []Shot // those of finding the limit, whose session is another one
	watch   watch
	report  *Report
	doing   string
	held    sync.WaitGroup // requests whose answers are held back
}

// shots are all until now.
func (p *prober) shots() []Shot {
	if p.session == nil {
		return p.learned
	}
	return append(slices.Clone(p.learned), p.session.Shots()...)
}

func (p *prober) tell(s *Shot) {
	if p.options.Progress != nil {
		p.options.Progress(p.doing, s)
	}
}

func (p *prober) newSession(b Budget) *Session {
	return NewSession(p.options.Sender, b, func(s Shot) { p.watch.see(&s); p.tell(&s) })
}

// What a check needs.
type need int

const (
	nothing need = iota // only what was seen already
	limited             // to send requests, and perhaps to wait
	numbers             // also to know the limit in numbers
)

// checks are all questions, in the order in which they are asked: those first that
// need no further request, those last that a server may fail at.
var checks = []struct {
	name, asks string
	why        string // it matters
	need       need
	ask        func(p *prober) (Check, error)
}{
	{"refusal", "Does a refusal say what it is?", "clients and balancers know what to do by the status and Retry-After alone: of others they retry at once, or take the server for broken", nothing, (*prober).refusal},
	{"standards", "Is what it says as the standards have it?", "clients ignore what is malformed, or fail on it", nothing, (*prober).standards},
	{"headers", "In which forms are limits told?", "a client that knows what remains slows down before it is refused", nothing, (*prober).headers},
	{"remaining", "Does Remaining tell the truth?", "clients that keep to it are refused, or wait for nothing", nothing, (*prober).remaining},
	{"boundary", "Can a client get double the limit around a boundary?", "what is behind the limit must bear twice of what it says", nothing, (*prober).boundary},
	{"denials", "Do denied requests count?", "a client that retries too early is locked out for as long as it tries", nothing, (*prober).denials},
	{"retry-after", "Does Retry-After tell the truth?", "clients wait as they are told, and are refused again, or idle", limited, (*prober).retryAfter},
	{"reset", "Does Reset tell the truth?", "clients wait as they are told, and are refused again, or idle", limited, (*prober).reset},
	{"isolation", "Does one client's use leave the other's alone?", "one client can shut out all others", limited, (*prober).isolation},
	{"cors", "May a browser read refusals, and ask beforehand?", "scripts see a network error in place of a refusal", limited, (*prober).cors},
	{"addresses", "Does a forged address get past the limit?", "whoever writes one line more is not limited", limited, (*prober).addresses},
	{"keys", "Does a made-up key get past the limit?", "whoever makes up keys is not limited", limited, (*prober).keys},
	{"concurrency", "Does the limit hold when all come at once?", "an attack comes all at once", numbers, (*prober).concurrency},
	{"instances", "Do all instances share the limit?", "with each instance the limit grows", numbers, (*prober).instances},
	{"methods", "Do HEAD and OPTIONS get past the limit?", "they may cost the server as much as GET", limited, (*prober).methods},
	{"paths", "Does another spelling of the path get past the limit?", "whoever spells otherwise is not limited", limited, (*prober).paths},
}

func (p *prober) run() error {
	p.doing = "finding the limit"
	whole := p.options.Budget
	share := whole
	if !p.options.Quick {
		share = Budget{Requests: max(1, int(learnRequests*float64(whole.Requests))), Time: time.Duration(learnTime * float64(whole.Time))}
	}
	begun := now()
	learning := p.newSession(share)
	finding, err := Learn(p.ctx, learning)
	p.learned = learning.Shots()
	p.report.Finding = finding
	if p.watch.turned != 0 { // refusals were counted as admitted
		p.report.Finding = &Finding{}
	}
	finding = p.report.Finding
	if !p.options.Quick && (errors.Is(err, ErrRequests) || errors.Is(err, ErrTime)) {
		finding.tell("finding the limit ended with its part of the budget: with more (--max-requests, --max-time) it may be told better")
		err = nil
	}
	p.session = p.newSession(Budget{Requests: whole.Requests - len(p.learned), Time: whole.Time - now().Sub(begun)})
	for _, c := range checks {
		check := Check{Verdict: Unknown}
		switch {
		case c.need > nothing && p.options.Quick:
			continue
		case !finding.Limited && err != nil:
			check.Seen = "not tried: " + p.end(err).Error()
		case !finding.Limited:
			check.Seen = "no limit was met"
		case c.need > nothing && err != nil:
			check.Seen = "not tried: " + p.end(err).Error()
		case c.need == numbers && !p.known():
			check.Seen = "the limit is not known well enough to tell"
		default:
			check, err = p.ask(c.name, c.ask)
		}
		check.Name, check.Asks = c.name, c.asks
		if check.Verdict == Bad || check.Verdict == Warn {
			check.Why = c.why
		}
		p.report.Checks = append(p.report.Checks, check)
	}
	return p.end(err)
}

// ask asks one question. The error is one that ends all; what one check alone had
// not budget enough for, others may have.
func (p *prober) ask(name string, question func(*prober) (Check, error)) (Check, error) {
	p.doing = name
	check, err := question(p)
	if err == nil {
		return check, nil
	}
	left := p.session.Left()
	switch {
	case errors.Is(err, errUnsettled), errors.Is(err, ErrTime) && left.Time > 0, errors.Is(err, ErrRequests) && left.Requests > 0:
		if check.Seen == "" {
			check = Check{Verdict: Unknown, Seen: "not finished: " + short(err)}
		}
		return check, nil
	}
	if check.Seen == "" {
		check = Check{Verdict: Unknown, Seen: "not finished: " + p.end(err).Error()}
	}
	return check, err
}

// short says what one check lacked.
func short(err error) string {
	switch {
	case errors.Is(err, ErrTime):
		return "it would take longer than there is time left (--max-time)"
	case errors.Is(err, ErrRequests):
		return "it would take more requests than are left (--max-requests)"
	}
	return err.Error()
}

var errInterrupted = errors.New("it was interrupted")

// end is why the probe ended: where it ended itself, the reason for that.
func (p *prober) end(err error) error {
	if err == nil || p.ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(p.ctx); cause != context.Canceled {
		return cause
	}
	return errInterrupted
}

// known says whether the limit is known in numbers, and likely.
func (p *prober) known() bool {
	f := p.report.Finding
	return f.Limited && len(f.Algorithms) > 0 && f.Algorithms[0].Certainty >= 0.6 && f.Units.Value > 0 && f.Window.Value > 0
}
