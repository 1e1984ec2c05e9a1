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
	blurred    = 0.90 // all others are contradicted, but the burst may be off by one or two
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
	rounds   int
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
		if s.algorithm == comporta.SlidingLog && bucketOfOne && number(likely[i], middle(likely[i])) == 1 {
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
	case len(weights) == 1 && c.settled && c.best.algorithm.Bucket() && e.jitter/middle(c.models) > 1:
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

// tighten narrows the intervals in which the server decided until hardly any model
// fits: those that do are the likeliest. tight is the part of the uncertainty that is
// left, small where a variant explains all that was seen without stretching it.
func (e *evidence) tighten(s *search) (models []model, tight float64) {
	models, tight = s.fitting, 1
	if s.algorithm.Bucket() {
		own := *e
		e = &own
		for range 3 {
			e.measureThere(middle(models))
		}
	}
	for _, part := range []float64{0.85, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12} {
		narrow := e.narrow(part)
		n := search{variant: s.variant, nearest: model{strain: math.Inf(1)}}
		var tried []model
		for k := range min(60, len(models)) {
			tried = append(tried, narrow.tryInto(&n, models[k*len(models)/min(60, len(models))]))
		}
		shift := 0.0
		if s.algorithm == comporta.SlidingCounter || s.algorithm == comporta.FixedWindow {
			shift = 0.002
		}
		narrow.descend(&n, tried, 6, 0.002, shift)
		if len(n.fitting) == 0 {
			break
		}
		models, tight = n.fitting, part
	}
	return models, tight
}

// arrival is when a group most likely arrived: a volley over the jitter on the way
// there, a single shot after its share of what its trip took too long.
func (e *evidence) arrival(g *group) (first, last float64) {
	shots := float64(g.admitted + g.denied + g.lost)
	if shots == 1 && e.jitter > 0 && g.lost == 0 {
		at := g.sent + g.over*e.there/e.jitter
		return at, at
	}
	return g.sent + e.there/(shots+1), g.sent + e.there*shots/(shots+1)
}

// likeliest are the models of those that fit under which what was seen is likeliest,
// and the logarithm of how likely it is.
func (e *evidence) likeliest(s *search) (models []model, chance float64) {
	tight, _ := e.tighten(s)
	own := *e
	if s.algorithm.Bucket() {
		for range 3 {
			own.measureThere(middle(tight))
		}
	}
	type told struct {
		m      model
		chance float64
	}
	var all []told
	for _, from := range [][]model{s.fitting, tight} {
		n := min(80, len(from))
		for k := range n {
			m := from[(2*k+1)*len(from)/(2*n)]
			limit := number([]model{m}, m.window)
			if s.algorithm.Bucket() {
				narrow := m
				own.narrow(0).try(&narrow)
				limit = min(max(int(math.Round(narrow.room.lo+0.1)), m.room.least()), m.room.most())
			}
			all = append(all, told{m, own.likelihood(&m, float64(limit))})
		}
	}
	chance = math.Inf(-1)
	for i := range all {
		chance = max(chance, all[i].chance)
	}
	if s.algorithm.Bucket() { // one valley: its middle is the best that can be said
		return tight, chance
	}
	for i := range all {
		if all[i].chance > chance-2 {
			models = append(models, all[i].m)
		}
	}
	return models, chance
}

// narrow is the evidence with a part of its uncertainty of time, around the arrival.
func (e *evidence) narrow(part float64) *evidence {
	n := *e
	n.groups = slices.Clone(e.groups)
	for i := range n.groups {
		g := &n.groups[i]
		first, last := e.arrival(g)
		g.first += (1 - part) * (first - g.first)
		g.last += (1 - part) * (last - g.last)
		if i > 0 {
			g.last = max(g.last, n.groups[i-1].last)
		}
	}
	q := &n.queue.unit
	q.Low, q.High = q.Value+(q.Low-q.Value)*part, q.Value+(q.High-q.Value)*part
	return &n
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
// admitted at once, where units come back at once too, or the middle.
func number(models []model, window float64) int {
	best, off := 0, math.Inf(1)
	for i := range models {
		m := &models[i]
		if d := math.Abs(m.window-window) / window; d < off {
			off = d
			best = m.room.least()
			if whole := m.algorithm == comporta.FixedWindow || m.algorithm == comporta.SlidingLog; !whole && !math.IsInf(m.room.over, 1) {
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
		units.Value = float64(number(c.models, window.Value))
		f.Window, f.Units = window, units
		f.Limit.Limit = int64(units.Value)
		f.Limit.Window = micros(window.Value)
		return
	}
	if c.shares[0].Algorithm == comporta.LeakyBucket && !c.evidence.queue.known {
		m := model{variant: c.best.variant, window: likely}
		if unit := c.evidence.unitOf(&m, float64(number(c.models, likely))); unit > 0 {
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

// delays say whether admitted requests were answered late as a queue would have it.
type delays struct {
	known, held   bool
	longest       float64 // as a queue would have it
	queued, plain float64 // how far the answers were off, with a queue and without
	shots         int
}

// delays compares how late answers came with how late a leaky bucket would have let
// them: the k-th in its queue by k units' time.
func (e *evidence) delays(found []search) (d delays) {
	best := delays{}
	for i := range found {
		if found[i].algorithm != comporta.TokenBucket || len(found[i].fitting) == 0 {
			continue
		}
		models, _ := e.tighten(&found[i])
		m := model{variant: found[i].variant, window: middle(models)}
		d := e.delaysOf(&m, float64(number(models, m.window)))
		if d.known && (!best.known || d.queued/d.plain < best.queued/best.plain) {
			best = d
		}
	}
	return best
}

func (e *evidence) delaysOf(m *model, limit float64) (d delays) {
	for _, q := range e.inLine(m, limit) {
		queue := q.place*m.window - q.since
		d.longest = max(d.longest, queue)
		d.queued += (q.late - queue) * (q.late - queue)
		d.plain += q.late * q.late
		d.shots++
	}
	d.known = d.longest > 0.5*e.jitter+0.01 && d.shots > 2
	d.held = d.queued < 0.5*d.plain
	return d
}

// A queued request is one that a leaky bucket would have let wait: until the place
// units before it, of its busy period, have left; since seconds after that began.
type queued struct{ place, since, late float64 }

// inLine are all admitted requests as a leaky bucket would have lined them up, and how
// late their answers were beyond what the way usually takes.
func (e *evidence) inLine(m *model, limit float64) (all []queued) {
	usual, n := 0.0, 0
	for i := range e.groups {
		for k := range e.groups[i].shots {
			if s := &e.groups[i].shots[k]; s.Denied() {
				usual += s.Received.Sub(s.Sent).Seconds() - e.trip
				n++
			}
		}
	}
	if n > 0 {
		usual /= float64(n)
	}
	g := &ghost{m: m, limit: limit, at: math.Inf(-1)}
	place, begun := 0.0, 0.0
	for i := range e.groups {
		x := &e.groups[i]
		first, last := e.arrival(x)
		at := (first + last) / 2
		if g.move(at); g.level <= 0 {
			place, begun = 0, at
		}
		var late []float64
		for k := range x.shots {
			if s := &x.shots[k]; s.Admitted() {
				late = append(late, s.Received.Sub(s.Sent).Seconds()-e.trip-usual)
			}
		}
		slices.Sort(late)
		for k, l := range late {
			all = append(all, queued{place + float64(k), at - begun, l})
		}
		place += float64(x.admitted)
		g.seen(at, float64(x.admitted), float64(x.denied))
		if m.attempts && x.denied > 0 { // full, whatever came before
			place, begun = limit, at
		}
	}
	return all
}

// unitOf is a unit's time by how late the answers of a leaky bucket came, by least
// squares; 0 where none waited.
func (e *evidence) unitOf(m *model, limit float64) float64 {
	var sum, squares float64
	for _, q := range e.inLine(m, limit) {
		if q.place > 0 {
			sum += (q.late + q.since) * q.place
			squares += q.place * q.place
		}
	}
	if squares == 0 {
		return 0
	}
	return sum / squares
}
