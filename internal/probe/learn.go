package probe

import (
	"math"
	"slices"
)

// most rounds that are fought after the first.
const mostRounds = 30

func (l *learner) learn() error {
	denied, err := l.first()
	if err != nil || !denied {
		return err
	}
	if err := l.rounds(); err != nil {
		return err
	}
	return l.measureWay(l.evidence())
}

// Rounds that tell nothing new are tolerated until they are so many, or cost so much.
const (
	idleRounds   = 7
	idleRequests = 600
)

// rounds goes on until the limit is settled, nothing more can be told, or what is
// told is not worth it.
func (l *learner) rounds() error {
	var before doubt
	idle, since, split := 0, 0, false
	for range mostRounds {
		e := l.evidence()
		found := l.search(e)
		if e.settled(found) && e.settled(l.search(e)) { // looked again, elsewhere
			return nil
		}
		left := l.s.Left()
		after := doubtOf(found)
		if idle++; after.less(before) {
			idle, since = 0, left.Requests
		}
		before = after
		var r round
		ok := idle < idleRounds && (idle <= 1 || since-left.Requests <= idleRequests)
		if ok {
			r, ok = e.plan(e.believe(relax(found), 24), l.elapsed(), left)
		}
		if !ok && (split || after.variants < 2) {
			return nil
		}
		if !ok {
			r, split, idle, since = l.part(found), true, 0, left.Requests
		}
		if err := l.fight(&r, e.jitter+0.005); err != nil {
			return err
		}
	}
	return nil
}

// part is the round that no other shows to be worth it: to take a fifth of what there
// is, once all is there. As long as all is always taken together, a sliding log gives
// all back together, too, like a window that begins with a request; what is taken next
// tells them apart.
func (l *learner) part(found []search) round {
	full := 0.0
	for i := range found {
		if len(found[i].fitting) > 0 {
			w, units := ranges(found[i].fitting)
			if full = max(full, w.High); found[i].algorithm.Bucket() {
				full = max(full, w.High*units.High)
			}
		}
	}
	some := max(1, l.most/5)
	return round{at: l.elapsed() + 1.05*full, share: float64(some), first: some}
}

// search looks at all variants, beginning with what fitted or nearly did before. What
// was found before in the same evidence stays.
func (l *learner) search(e *evidence) []search {
	l.searches++
	e.shift = math.Mod(float64(l.searches)*0.618, 1)
	found := l.searchAll(e)
	if e.queue.known && e.lost == 0 && !slices.ContainsFunc(found, func(s search) bool { return len(s.fitting) > 0 }) {
		// Answers may also come late, and evenly, since what stands behind the limit is
		// slow and does one after the other. (Where answers are lost, it is their places
		// in the queue that do not fit.)
		other := *e
		other.queue.known = false
		if again := l.searchAll(&other); fitsBetter(again, found) {
			e.queue.known, found = false, again
		}
	}
	l.found, l.groups = found, len(e.groups)
	l.seeds = l.seeds[:0]
	for i := range found {
		f := found[i].fitting
		n := min(40, len(f))
		for k := range n {
			l.seeds = append(l.seeds, f[(2*k+1)*len(f)/(2*n)])
		}
		l.seeds = append(l.seeds, found[i].nearest)
	}
	return found
}

// fitsBetter says that something fits, or misses by less than half of what all of the
// others miss by.
func fitsBetter(found, others []search) bool {
	least := func(found []search) (strain float64) {
		strain = math.Inf(1)
		for i := range found {
			if len(found[i].fitting) > 0 {
				return 0
			}
			strain = min(strain, found[i].nearest.strain)
		}
		return strain
	}
	return 2*least(found) < least(others)
}

// searchAll is one look at each variant: where a queue is seen, at those alone that
// have one.
func (l *learner) searchAll(e *evidence) []search {
	found := make([]search, 0, len(variants))
	for i, v := range variants {
		s := search{variant: v, nearest: model{variant: v, strain: math.MaxInt32}}
		if !e.queue.known || v.algorithm.Bucket() {
			s = e.search(v, l.seeds)
		}
		if l.groups == len(e.groups) && len(l.found) > 0 {
			s.fitting = append(s.fitting, l.found[i].fitting...)
			if l.found[i].nearest.strain < s.nearest.strain {
				s.nearest = l.found[i].nearest
			}
		}
		found = append(found, s)
	}
	return found
}

// measureWay sends single shots through an empty queue, where the burst of a leaky
// bucket depends on how the jitter is shared between the way there and back.
func (l *learner) measureWay(e *evidence) error {
	const singles = 60
	unit := e.queue.unit.Value
	if !e.queue.known || e.jitter/unit < 1 || l.s.Left().Requests < singles {
		return nil
	}
	if err := l.until(l.elapsed() + float64(l.most)*2*unit); err != nil {
		return err
	}
	for range singles {
		if _, err := l.shoot(1); err != nil {
			return err
		}
		if err := l.until(l.elapsed() + 2*unit); err != nil {
			return err
		}
	}
	return nil
}

// A doubt is what is not known yet: how many variants fit, and how far their numbers
// lie apart.
type doubt struct {
	variants       int
	windows, units float64
}

func doubtOf(found []search) (d doubt) {
	for i := range found {
		if len(found[i].fitting) > 0 {
			w, u := ranges(found[i].fitting)
			d.variants++
			d.windows += w.High/w.Low - 1
			d.units += u.High - u.Low
		}
	}
	return d
}

// less says whether clearly less is unknown than before.
func (d doubt) less(before doubt) bool {
	return d.variants != before.variants || d.windows < 0.93*before.windows || d.units < 0.93*before.units
}

// relax takes, where nothing fits, what misses by least as fitting.
func relax(found []search) []search {
	least := math.Inf(1)
	for i := range found {
		if len(found[i].fitting) > 0 {
			return found
		}
		least = min(least, found[i].nearest.strain)
	}
	found = slices.Clone(found)
	for i := range found {
		if found[i].nearest.strain <= least+0.5 {
			found[i].fitting = []model{found[i].nearest}
		}
	}
	return found
}

// Nothing is known of a limit that admits nothing for so long, in seconds.
const hopeless = 130

// first exhausts the budget of the key, waits until something comes back, and sees
// whether that is one unit or many.
func (l *learner) first() (denied bool, err error) {
	_, denied, err = l.ramp(1, max(1, l.budget*6/10), 1.5)
	if err != nil || !denied {
		return denied, err
	}
	if l.most = l.total(); l.most == 0 { // used before, or closed
		begun := l.elapsed()
		if err := l.poll(nil, 0.02, 0.2, hopeless); err != nil {
			return true, err
		}
		if l.total() == 0 {
			return false, nil
		}
		if err := l.until(l.elapsed() + 2 + 2*(l.elapsed()-begun)); err != nil {
			return true, err
		}
		l.forget()
		_, denied, err = l.ramp(1, max(1, l.s.Left().Requests*6/10), 1.5)
		if l.most = l.total(); err != nil || !denied {
			return denied, err
		}
	}
	if err := l.poll(nil, 0.02, 0.2, math.Inf(1)); err != nil {
		return true, err
	}
	_, _, err = l.ramp(1, max(2, l.most*4/10), 3)
	return true, err
}

// fight does what a round says.
func (l *learner) fight(r *round, blur float64) error {
	if err := l.until(r.at); err != nil {
		return err
	}
	most := int(r.share)
	if r.all {
		most = l.s.Left().Requests
	}
	_, denied, err := l.drain(min(r.first, most), max(r.first/6, int(min(2*r.refill, float64(r.first)))), most)
	if err != nil {
		return err
	}
	if denied {
		if r.denials { // each poll puts off what it looks for: one, and think again
			if err := l.until(max(l.elapsed(), r.returns[len(r.returns)/2]+blur)); err != nil {
				return err
			}
			_, err := l.shoot(1)
			return err
		}
		if err := l.poll(thin(r.returns, l.elapsed(), blur, 40), blur, 0.1, math.Inf(1)); err != nil {
			return err
		}
		enough := max(2, l.most*4/10)
		_, _, err = l.ramp(min(enough, 1+int(2*r.refill)), enough, 2)
	}
	return err
}

// drain sends one volley, and then what is surely more than comes back meanwhile,
// until one is denied.
func (l *learner) drain(first, second, most int) (sent int, denied bool, err error) {
	v, err := l.shoot(first)
	if _, d := l.answers(v); err != nil || d > 0 || v.n >= most {
		return v.n, d > 0, err
	}
	sent, denied, err = l.ramp(max(1, second), most-v.n, 1.5)
	return sent + v.n, denied, err
}

// total is how many were admitted so far.
func (l *learner) total() (sum int) {
	e := l.evidence()
	for i := range e.groups {
		sum += e.groups[i].admitted
	}
	return sum
}

// poll sends one at a time until one is admitted: when something may come back, and
// then with gaps that grow with the time that this takes; for most seconds.
func (l *learner) poll(expected []float64, least, part, most float64) error {
	begun := l.elapsed()
	for l.elapsed()-begun < most {
		next := l.elapsed() + max(least, part*(l.elapsed()-begun))
		if len(expected) > 0 {
			next, expected = max(expected[0], l.elapsed()), expected[1:]
		}
		if err := l.until(next); err != nil {
			return err
		}
		v, err := l.shoot(1)
		if err != nil {
			return err
		}
		if _, denied := l.answers(v); denied == 0 {
			return nil
		}
	}
	return nil
}

// thin makes about most of many instants: the polls that tell most of them apart.
func thin(expected []float64, from, least float64, most int) (polls []float64) {
	last := from
	step := max(1, len(expected)/most)
	for i := 0; i < len(expected); i += step {
		at := expected[i] + least/2
		if at-last < least {
			continue
		}
		if gap := at - last; gap > 4*least { // and one before, where nothing should have come yet
			polls = append(polls, at-1.5*least)
		}
		polls = append(polls, at)
		last = at
	}
	return polls
}
