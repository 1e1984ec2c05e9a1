package probe

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/comporta/comporta"
)

// boundary first looks for the window in which most passed, of all that was sent;
// where something but a bucket limits, it then tries to get double the limit: it
// spends what there is just before the instant at which a window would end, and
// again just after it.
func (p *prober) boundary() (Check, error) {
	f := p.report.Finding
	units := int(f.Units.Value)
	seen := fmt.Sprintf("at most %d passed within %s, of a limit of %d", p.most(), seconds(f.Window.Value), units)
	if len(f.Algorithms) > 0 && f.Limit.Algorithm.Bucket() && f.Algorithms[0].Certainty >= 0.6 {
		return Check{Verdict: Good, Seen: fmt.Sprintf("no boundary: in any time, what it gives then and a burst of %.0f; %s", f.Burst.Value, seen)}, nil
	}
	if !p.known() {
		return Check{Verdict: Unknown, Seen: "the limit is not known well enough to tell"}, nil
	}
	if p.options.Quick {
		return p.boundaryOf(seen), nil
	}
	passed, within, why, err := p.double()
	switch {
	case err != nil:
		c := p.boundaryOf(seen + "; not tried: " + short(err))
		return c, err
	case why != "":
		return p.boundaryOf(seen + "; not tried: " + why), nil
	case passed > units+max(1, units/5):
		if f.Limit.Algorithm != comporta.FixedWindow {
			f.beginsAnew(passed, within)
		}
		return Check{Verdict: Warn, Seen: fmt.Sprintf("yes: %d passed within %s around the end of a window, of a limit of %d in %s", passed, seconds(within), units, seconds(f.Window.Value)),
			Todo: "use a sliding window, or a bucket with a small burst, where that is too much"}, nil
	}
	return Check{Verdict: Good, Seen: fmt.Sprintf("no: the window slides; %d passed within %s around the end of one, of a limit of %d in %s", passed, seconds(within), units, seconds(f.Window.Value))}, nil
}

// beginsAnew changes a finding that was refuted: what seemed to slide counts in windows,
// though not in those of a clock.
func (f *Finding) beginsAnew(passed int, within float64) {
	f.tell("%d passed within %s around the end of a window: so it is no %s, but a fixed window, of which each begins with a client's first request after the last one", passed, seconds(within), f.Limit.Algorithm)
	f.Algorithms = []Candidate{{comporta.FixedWindow, certain}}
	f.Limit.Algorithm = comporta.FixedWindow
	f.DenialsCount = Answer{Why: "a fixed window that is full stays so until it ends, whether denied requests count or not"}
}

// boundaryOf is what is to be expected of the algorithm.
func (p *prober) boundaryOf(seen string) Check {
	if p.report.Finding.Limit.Algorithm == comporta.FixedWindow {
		return Check{Verdict: Warn, Seen: "yes, as of any fixed window: what passes at its end and at the next one's beginning is twice the limit; " + seen,
			Todo: "use a sliding window, or a bucket with a small burst, where that is too much"}
	}
	return Check{Verdict: Good, Seen: "no: the window slides; " + seen}
}

// most is the most of the user's own requests that passed within a window.
func (p *prober) most() (most int) {
	var at []time.Time
	for _, s := range p.shots() {
		if s.Admitted() && plain(s.Request) {
			at = append(at, s.Received)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	window := time.Duration(p.report.Finding.Window.Low * float64(time.Second))
	first := 0
	for i := range at {
		for at[i].Sub(at[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// double uses up the limit and polls for the instant at which something passes
// again, twice: where windows begin anew, by the clock or with a client's first
// request, one window lies between. Just before the third one, what is left of the
// second is spent, and just after its beginning all that then passes.
func (p *prober) double() (passed int, within float64, why string, err error) {
	f := p.report.Finding
	units := int(f.Units.High)
	switch {
	case units > rushMost:
		return 0, 0, fmt.Sprintf("it would take more than %d requests at once", rushMost), nil
	case units < 3:
		return 0, 0, "the limit is too small to tell", nil
	}
	if p.session.Left().Requests < 4*units+2*polls {
		return 0, 0, "", ErrRequests
	}
	if p.session.Left().Time.Seconds() < 4.5*f.Window.High {
		return 0, 0, "", ErrTime
	}
	var begins [2]time.Time
	for i := range begins {
		if _, err = p.exhaust(nil); err != nil {
			return 0, 0, "", err
		}
		if begins[i], err = p.poll(f.Window.High); err != nil {
			return 0, 0, "", err
		}
		if begins[i].IsZero() {
			return 0, 0, "nothing passed for more than a window", nil
		}
	}
	window := begins[1].Sub(begins[0]).Seconds()
	margin := 3*f.Window.High/polls + 3*p.trip()
	switch {
	case window < 0.7*f.Window.Low:
		return 0, 0, "something comes back before a window is over", nil
	case margin > 0.2*window:
		return 0, 0, "the window is too short", nil
	}
	at := func(offset float64) time.Duration {
		return begins[1].Add(time.Duration((window + offset) * float64(time.Second))).Sub(now())
	}
	if err = p.session.Sleep(p.ctx, at(-margin)); err != nil {
		return 0, 0, "", err
	}
	type volley struct {
		shots []Shot
		err   error
	}
	before := make(chan volley, 1) // what passes may be answered after the boundary
	p.held.Go(func() {
		shots, err := p.session.Volley(p.ctx, units+2, nil)
		before <- volley{shots, err}
	})
	if err = p.session.Sleep(p.ctx, at(margin)); err != nil {
		return 0, 0, "", err
	}
	after, err := p.session.Volley(p.ctx, units+2, nil)
	if err != nil {
		return 0, 0, "", err
	}
	early := <-before
	if early.err != nil {
		return 0, 0, "", early.err
	}
	first, _ := passedOf(early.shots)
	second, took := passedOf(after)
	return first + second, 2*margin + took + p.trip(), "", nil
}

// polls are how many a window takes: they tell an instant well enough, and are no load.
const polls = 100

// poll sends one at a time until one passes, and is the instant of that; zero where
// none did for more than a window. A shot each hundredth of the window tells the
func (p *prober) poll(window float64) (time.Time, error) {
	gap := time.Duration(max(window/polls, 0.02) * float64(time.Second))
	until := now().Add(time.Duration(1.2*window*float64(time.Second)) + 2*gap)
	for now().Before(until) {
		s, err := p.session.Shoot(p.ctx, nil)
		if err != nil {
			return time.Time{}, err
		}
		if s.Admitted() {
			return s.Sent.Add(time.Duration(p.trip() / 2 * float64(time.Second))), nil
		}
		if err := p.session.Sleep(p.ctx, gap); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, nil
}

// seconds writes a time as people would.
func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.0f ms", 1000*s)
	}
	return fmt.Sprintf("%.4g s", math.Round(1000*s)/1000)
}
