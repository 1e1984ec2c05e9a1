package sim

import (
	"slices"
	"time"
)

const (
	spikeTime = 100 * time.Millisecond
	crowdStep = 100 * time.Millisecond // what one bar counts, where the run is not long
	mostBars  = 2048                   // that are kept
)

// succeed counts a request that was answered.
func (p *Party) succeed(now, waited time.Duration) {
	p.Successes++
	p.Took = now
	p.waits = append(p.waits, waited)
}

// finish works out what is told of a party, once its run is over.
func (p *Party) finish() {
	slices.Sort(p.waits)
	if n := len(p.waits); n > 0 {
		p.Median, p.P99 = p.waits[(n-1)/2], p.waits[(n*99+99)/100-1]
	}
	p.Spike = p.spike.most
	p.waits, p.spike = nil, spike{}
}

// spike finds the most attempts in any spikeTime: it keeps those of the last.
type spike struct {
	last []time.Duration
	most int
}

func (s *spike) add(at time.Duration) {
	gone := 0
	for gone < len(s.last) && s.last[gone] <= at-spikeTime {
		gone++
	}
	s.last = append(s.last[gone:], at)
	s.most = max(s.most, len(s.last))
}

// crowdBar counts what reaches the server in one step.
type crowdBar struct{ admitted, refused int }

func (b crowdBar) all() int { return b.admitted + b.refused }

// crowdBars are those of a run. Where there are too many, several become one, so
// that a long run takes no more memory than a short one.
type crowdBars struct {
	step  time.Duration // crowdStep times 1, 2, 10, 20, 100 and so on
	fifth bool          // the next is five times as long, not twice
	bars  []crowdBar
}

func (b *crowdBars) add(at time.Duration, allowed bool) {
	for at/b.step >= mostBars {
		many := 2
		if b.fifth {
			many = 5
		}
		b.bars, b.step, b.fifth = b.merged(many), b.step*time.Duration(many), !b.fifth
	}
	n := int(at / b.step)
	for len(b.bars) <= n {
		b.bars = append(b.bars, crowdBar{})
	}
	if allowed {
		b.bars[n].admitted++
	} else {
		b.bars[n].refused++
	}
}

// merged are the bars, so many of them in one.
func (b *crowdBars) merged(many int) (bars []crowdBar) {
	for i, bar := range b.bars {
		if i%many == 0 {
			bars = append(bars, crowdBar{})
		}
		into := &bars[len(bars)-1]
		into.admitted += bar.admitted
		into.refused += bar.refused
	}
	return bars
}

// bars are those of all parties, at one step, of which the longest has at most so
// many.
func (r *CrowdReport) bars(most int) (step time.Duration, bars [][]crowdBar) {
	longest := time.Duration(0)
	for _, p := range r.Parties {
		step = max(step, p.bars.step)
		longest = max(longest, time.Duration(len(p.bars.bars))*p.bars.step)
	}
	finest := step
	for ten := time.Duration(1); longest > time.Duration(most)*step; ten *= 10 {
		for _, times := range []time.Duration{1, 2, 3, 4, 5, 6, 8} {
			if step = finest * ten * times; longest <= time.Duration(most)*step {
				break
			}
		}
	}
	for _, p := range r.Parties {
		bars = append(bars, p.bars.merged(int(step/p.bars.step)))
	}
	return step, bars
}
