package probe

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/comporta/comporta"
)

// The certainties that are stated. What is left when all other algorithms are
// contradicted is certain but for what no probe can see; the others are shares.
const (
	certain    = 0.97 // all others are contradicted, and the numbers are known
	blurred    = 0.90 // all others are contradicted, but the limit or burst may be off by some
	unsettled  = 0.80 // all others are contradicted, but the numbers are not known well
	contested  = 0.75 // others fit as well, though worse
	contrarian = 0.50 // nothing fits without contradiction
)

// A conclusion is the best of what fits.
type conclusion struct {
	found    []search
	evidence *evidence
	relaxed  bool // nothing fits; the nearest stand for it
	shares   []Candidate
	best     *search
	settled  bool
	same     bool    // a log of one unit fits too, which is a bucket of one
	models   []model // of the best, that fit best
	delays   delays
	contrary float64 // the strain of the next algorithm
}

// conclude weighs what was found.
func (e *evidence) conclude(found []search) *conclusion {
	c := &conclusion{evidence: e, found: found}
	c.relaxed = !slices.ContainsFunc(found, func(s search) bool { return len(s.fitting) > 0 })
	found = relax(found)
	c.delays = e.delays(found)
	weights := map[comporta.Algorithm]float64{}
	bestWeight := 0.0
	each := make([]float64, len(found))
	likely, chances := make([][]model, len(found)), make([]float64, len(found))
	best := math.Inf(-1)
	for i := range found {
		if len(found[i].fitting) > 0 {
			likely[i], chances[i] = e.likeliest(&found[i])
			if math.IsNaN(chances[i]) || math.IsInf(chances[i], 0) {
				chances[i] = -600 // as unlikely as can be told
			}
			best = max(best, chances[i])
		}
	}
	bucketOfOne := slices.ContainsFunc(found, func(s search) bool {
		return s.algorithm.Bucket() && slices.ContainsFunc(s.fitting, func(m model) bool { return m.room.least() == 1 })
	})
	for i := range found {
		s := &found[i]
		if len(s.fitting) == 0 {
			continue
		}
		if s.algorithm == comporta.SlidingLog && bucketOfOne && number(likely[i], middle(likely[i]), false) == 1 {
			c.same = true
			continue
		}
		weight := math.Exp(max(-600, chances[i]-best))
		if s.attempts {
			weight *= 0.7
		}
		if s.algorithm == comporta.TokenBucket && c.delays.known && c.delays.held {
			weight *= 50
		}
		weights[s.algorithm] += weight
		each[i] = weight
	}
	for i := range found {
		if each[i] == 0 {
			continue
		}
		a, rest := found[i].algorithm, 0.0
		if c.best != nil {
			rest = weights[c.best.algorithm] - weights[a]
		}
		if c.best == nil || rest < 0 || a == c.best.algorithm && each[i] > bestWeight {
			c.best, c.models, bestWeight = &found[i], likely[i], each[i]
		}
	}
	if c.best == nil {
		return c
	}
	c.settled = e.settled(found)
	c.contrary = math.Inf(1)
	sum := 0.0
	for i := range found {
		if found[i].algorithm != c.best.algorithm {
			c.contrary = min(c.contrary, found[i].nearest.strain)
		}
	}
	for _, w := range weights {
		sum += w
	}
	most := contested
	switch {
	case c.relaxed:
		most = contrarian
	case len(weights) == 1 && c.settled && c.blurs():
		most = blurred
	case len(weights) == 1 && c.settled:
		most = certain
	case len(weights) == 1:
		most = unsettled
	}
	for a, w := range weights {
		c.shares = append(c.shares, Candidate{a, min(most, w/sum)})
	}
	slices.SortFunc(c.shares, func(a, b Candidate) int {
		return -cmp.Compare(weights[a.Algorithm], weights[b.Algorithm])
	})
	// The numbers are the best's: where others weigh the same, it stands first.
	k := slices.IndexFunc(c.shares, func(s Candidate) bool { return s.Algorithm == c.best.algorithm })
	first := c.shares[k]
	c.shares = slices.Insert(slices.Delete(c.shares, k, k+1), 0, first)
	c.leak()
	return c
}

// blurs says that the limit or burst may be one off, or more: units ran in while a
// volley arrived, or answers were lost.
func (c *conclusion) blurs() bool {
	_, units := ranges(c.best.fitting)
	ran := c.best.algorithm.Bucket() && c.evidence.jitter/middle(c.models) > 1
	return ran || units.High-units.Low > 1
}

// leak tells the two buckets apart.
func (c *conclusion) leak() {
	for i := range c.shares {
		s := &c.shares[i]
		if s.Algorithm != comporta.TokenBucket {
			continue
		}
		switch {
		case c.delays.known && c.delays.held:
			s.Algorithm = comporta.LeakyBucket
		case !c.delays.known && s.Certainty > contested:
			s.Certainty = contested // a leaky bucket whose delays are too short to be seen
		}
	}
}

// ranges are the windows and limits of models.
func ranges(models []model) (window, units Estimate) {
	window.Low, units.Low = math.Inf(1), math.Inf(1)
	for i := range models {
		m := &models[i]
		window.Low, window.High = min(window.Low, m.window), max(window.High, m.window)
		units.Low, units.High = min(units.Low, float64(m.room.least())), max(units.High, float64(m.room.most()))
	}
	window.Value = math.Sqrt(window.Low * window.High)
	units.Value = (units.Low + units.High) / 2
	return window, units
}

// human are the windows that people write, in seconds.
var human = []float64{1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600}

// near is how far from the likeliest number a rounder one may be.
const near = 0.025

// round is a human window in the range and near the value, or the value.
func (w Estimate) round() float64 {
	best := w.Value
	off := near
	for _, h := range human {
		if d := math.Abs(math.Log(h / w.Value)); h >= w.Low && h <= w.High && d < off {
			best, off = h, d
		}
	}
	return best
}

// number is the limit of the model nearest to the window: what was certainly
// admitted at once, where units come back at once too and no answer was lost, or the
// middle.
func number(models []model, window float64, lost bool) int {
	best, off := 0, math.Inf(1)
	for i := range models {
		m := &models[i]
		if d := math.Abs(m.window-window) / window; d < off {
			off = d
			best = m.room.least()
			whole := m.algorithm == comporta.FixedWindow || m.algorithm == comporta.SlidingLog
			if (!whole || lost) && !math.IsInf(m.room.over, 1) {
				best = min(max(int(math.Round((m.room.lo+m.room.over)/2)), m.room.least()), m.room.most())
			}
		}
	}
	return best
}

// burst is the burst of a bucket: what was admitted, less what ran in, if each shot
// came when it most likely did. Whoever is denied last finds the bucket empty, so the
// lower bound is the number.
func (e *evidence) burst(s *search, unit float64, within Estimate) int {
	own := *e
	for range 3 {
		own.measureThere(unit)
	}
	m := model{variant: s.variant, window: unit}
	own.narrow(0).try(&m)
	return int(min(max(math.Round(m.room.lo+0.1), within.Low), within.High))
}

// middle is the window of the model in the middle.
func middle(models []model) float64 {
	windows := make([]float64, len(models))
	for i := range models {
		windows[i] = models[i].window
	}
	slices.Sort(windows)
	return windows[len(windows)/2]
}

// numbers writes the conclusion as a limit.
func (c *conclusion) numbers(f *Finding) {
	window, units := ranges(c.best.fitting)
	likely := middle(c.models)
	attempts := comporta.Admitted
	if c.best.attempts {
		attempts = comporta.Attempts
	}
	f.Limit = comporta.Limit{Algorithm: c.shares[0].Algorithm, Charge: attempts}
	if !c.best.algorithm.Bucket() {
		window.Value = Estimate{likely, window.Low, window.High}.round()
		units.Value = float64(number(c.models, window.Value, c.evidence.lost > 0))
		f.Window, f.Units = window, units
		f.Limit.Limit = int64(units.Value)
		f.Limit.Window = micros(window.Value)
		return
	}
	if c.shares[0].Algorithm == comporta.LeakyBucket && !c.evidence.queue.known {
		m := model{variant: c.best.variant, window: likely}
		if unit := c.evidence.unitOf(&m, float64(number(c.models, likely, false))); unit > 0 {
			likely = min(max(unit, window.Low), window.High)
		}
	}
	burst := c.evidence.burst(c.best, likely, units)
	f.Burst = Estimate{float64(burst), units.Low, units.High}
	l, w := write(Estimate{likely, window.Low, window.High}, float64(burst))
	f.Limit.Limit, f.Limit.Window = int64(l), micros(w)
	if burst != int(l) {
		f.Limit.Burst = int64(burst)
	}
	f.Window = Estimate{w, l * window.Low, l * window.High}
	f.Units = Estimate{l, w / window.High, w / window.Low}
}

// write chooses among the ways to write one rate: as a bucket's burst per the time in
// which that runs in, if a person would write that; as a round number per second,
// minute or hour; or as it is.
func write(unit Estimate, burst float64) (limit, window float64) {
	full := Estimate{burst * unit.Value, burst * unit.Low, burst * unit.High}
	if w := full.round(); w != full.Value {
		return burst, w
	}
	for _, w := range []float64{1, 60, 3600} {
		n := roundest(w/min(unit.High, unit.Value*(1+near/2)), w/max(unit.Low, unit.Value*(1-near/2)))
		if n > 0 {
			return n, w
		}
	}
	return burst, full.Value
}

// roundest is a whole number of one or two digits and zeros in a range, or 0.
func roundest(lo, hi float64) float64 {
	for _, step := range []float64{1000, 500, 100, 50, 10, 5, 1} {
		n := math.Round((lo+hi)/2/step) * step
		if n >= lo && n <= hi && n > 0 && n/step < 100 && (step > 1 || n < 10) {
			return n
		}
	}
	return 0
}

func micros(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds*1e6)) * time.Microsecond
}
