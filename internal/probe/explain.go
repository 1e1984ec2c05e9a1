package probe

import (
	"fmt"
	"math"

	"github.com/comporta/comporta"
)

// finding says what is known now.
func (l *learner) finding(e *evidence) *Finding {
	f := &Finding{}
	admitted, denied := 0, 0
	for i := range e.groups {
		admitted += e.groups[i].admitted
		denied += e.groups[i].denied
	}
	f.Within = micros(max(0, e.span()))
	switch {
	case denied == 0:
		f.AtLeast = admitted
		f.tell("all of %d requests within %.1f s were admitted: if there is a limit, it is over that", admitted, e.span())
		return f
	case admitted == 0:
		f.Limited = true
		f.tell("all of %d requests within %.1f s were denied: the limit is 0, or was used up before and does not come back soon, or the key is not one that is let in", denied, e.span())
		return f
	}
	f.Limited, f.AtLeast = true, admitted
	c := e.conclude(l.search(e))
	if c.best == nil {
		f.tell("%d requests were admitted and %d denied, in a way that is none of the five algorithms", admitted, denied)
		return f
	}
	f.Algorithms = c.shares
	c.numbers(f)
	c.denials(f)
	c.tellAll(f, l, e, admitted, denied)
	f.hear(e.said())
	return f
}

func (f *Finding) tell(format string, args ...any) {
	f.Evidence = append(f.Evidence, fmt.Sprintf(format, args...))
}

// denials says whether denied requests count.
func (c *conclusion) denials(f *Finding) {
	if c.best.algorithm == comporta.FixedWindow {
		f.DenialsCount.Why = "a fixed window that is full stays so until it ends, whether denied requests count or not"
		return
	}
	for i := range c.found {
		o := &c.found[i]
		if o.algorithm != c.best.algorithm || o.attempts == c.best.attempts {
			continue
		}
		if len(o.fitting) > 0 {
			f.DenialsCount.Why = "what was seen fits both"
			return
		}
		f.DenialsCount = Answer{Known: true, Yes: c.best.attempts, Certainty: min(certain, c.shares[0].Certainty)}
		f.DenialsCount.Why = fmt.Sprintf("the other way, at least %.1f units would be unexplained", o.nearest.strain)
	}
}

func (c *conclusion) tellAll(f *Finding, l *learner, e *evidence, admitted, denied int) {
	f.tell("%d requests were admitted and %d denied within %.1f s; a trip took %.0f ms, and up to %.0f ms more", admitted, denied, e.span(), e.trip*1e3, e.jitter*1e3)
	window, units := ranges(c.best.fitting)
	switch {
	case c.best.own && c.best.algorithm == comporta.FixedWindow:
		f.tell("what was used came back all at once, %.4g to %.4g s after the first request that was admitted since the last time: each window begins with a client's request", window.Low, window.High)
	case c.best.own:
		f.tell("what was used in a period of %.4g to %.4g s, denied requests and all, came back evenly over the next; after an idle one a period begins with a request, as HAProxy counts", window.Low, window.High)
	case c.best.algorithm == comporta.FixedWindow:
		f.tell("what was used came back all at once, at boundaries %.4g to %.4g s apart, however it was used before", window.Low, window.High)
		f.aligned(l, c)
	case c.best.algorithm == comporta.SlidingLog:
		f.tell("each unit came back %.4g to %.4g s after it was used", window.Low, window.High)
	case c.best.algorithm == comporta.SlidingCounter:
		f.tell("nothing came back before a boundary, and from there on evenly over a window of %.4g to %.4g s", window.Low, window.High)
	default:
		f.tell("units came back one by one, %.4g to %.4g a second, from the moment of use on, up to %.0f to %.0f", 1/window.High, 1/window.Low, units.Low, units.High)
		if f.Limit.Limit > 0 && f.Limit.Burst > 0 {
			f.tell("a bucket's rate may be written in many ways: %d per %v is one that people would choose", f.Limit.Limit, f.Limit.Window)
		}
	}
	if c.best.algorithm.Bucket() {
		c.tellDelays(f)
	}
	for i := range c.found {
		o := &c.found[i]
		switch {
		case o.algorithm == c.best.algorithm:
		case o.algorithm == comporta.SlidingLog && c.same:
			f.tell("a sliding_log of one unit is the same as a bucket of one")
		case len(o.fitting) > 0:
			f.tell("%s would fit as well", o.name())
		case o.nearest.strain >= math.MaxInt32:
			f.tell("%s is contradicted: it would hold no answer back", o.name())
		default:
			f.tell("%s is contradicted: whatever its numbers, %.1f units would be unexplained", o.name(), o.nearest.strain)
		}
	}
	if c.relaxed {
		f.tell("nothing fits all that was seen: the best misses by %.1f units; perhaps others use the same key, or there are several limits", c.best.nearest.strain)
	}
}

func (s *search) name() string {
	if s.own && s.algorithm == comporta.FixedWindow {
		return "a fixed_window that begins with a client's request"
	}
	if s.own {
		return "a sliding_counter that charges denied requests without end"
	}
	if s.attempts {
		return fmt.Sprintf("a %v that charges denied requests too", s.algorithm)
	}
	return fmt.Sprintf("a %v", s.algorithm)
}

func (c *conclusion) tellDelays(f *Finding) {
	d := &c.delays
	switch {
	case !d.known:
		f.tell("a leaky bucket's delays would be too short to be told from the way's")
	case d.held:
		f.tell("admitted requests were answered late, as a queue of up to %.2f s would have it: off by %.0f ms, and by %.0f ms without the queue",
			d.longest, 1e3*math.Sqrt(d.queued/float64(d.shots)), 1e3*math.Sqrt(d.plain/float64(d.shots)))
	default:
		f.tell("admitted requests were not answered late, as a leaky bucket's queue of up to %.2f s would have it; one that only meters is a token bucket", d.longest)
	}
}

// aligned says where windows begin, if that is where a clock's do.
func (f *Finding) aligned(l *learner, c *conclusion) {
	w := f.Window.Value
	into := math.Mod(float64(l.begun.UnixMicro())/1e6+c.models[len(c.models)/2].boundary, w)
	if off := min(into, w-into); off < 0.02*w {
		f.tell("the boundaries are those of the clock: whole multiples of the window since 1970, as near as %.0f ms", off*1e3)
	}
}
