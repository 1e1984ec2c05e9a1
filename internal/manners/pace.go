package manners

import "time"

const (
	// maxHints are kept of one lane; a server that names more at a time is not followed.
	maxHints = 16
	// gentleMost is the most that the gentle pace puts between two requests.
	gentleMost = time.Second
	// probeEvery is the longest that hints alone may hold requests: they are hints,
	// and may be wrong or hostile.
	probeEvery = 10 * time.Minute
)

// A known is a hint as it stands now.
type known struct {
	Hint
	from  int64     // the attempt that brought it
	reset time.Time // when more remains
	left  int64     // of Remaining, when all that is under way has been counted
}

// learn takes the hints of an answer. Those that an earlier attempt brings late
// are out of date.
func (l *Lane) learn(now time.Time, sent Sent, hints []Hint) {
	for _, h := range hints {
		if h.Remaining < 0 || h.Reset < 0 {
			continue
		}
		k := l.known(now, h.Policy)
		if k == nil || sent.number < k.from {
			continue
		}
		if h.Limit < 0 {
			h.Limit = max(k.Limit, h.Remaining) // the most that was ever seen
		}
		if h.Window < 0 {
			h.Window = k.Window
		}
		*k = known{Hint: h, from: sent.number, reset: now.Add(min(h.Reset, probeEvery)), left: h.Remaining - l.underWay}
	}
}

// known is what is known of a policy, for the caller to change. Where there are too
// many, a new one takes the place of one that says nothing any more; nil where there
// is none.
func (l *Lane) known(now time.Time, policy string) *known {
	var over *known
	for i := range l.hints {
		k := &l.hints[i]
		if k.Policy == policy {
			return k
		}
		if !k.reset.After(now) {
			over = k
		}
	}
	if len(l.hints) < maxHints {
		l.hints = append(l.hints, known{})
		over = &l.hints[len(l.hints)-1]
	}
	if over != nil {
		*over = known{Hint: Hint{Policy: policy, Limit: -1, Window: -1}}
	}
	return over
}

// pace is when the next may leave by what remains.
func (l *Lane) pace(now time.Time) (at time.Time) {
	for i := range l.hints {
		k := &l.hints[i]
		switch {
		case !k.reset.After(now):
			// Nobody knows what there is now. Where nothing was left, all wait for this.
			if k.left <= 0 && k.from > 0 && !k.Other {
				l.spaceOut()
			}
			k.from = 0
		case k.left <= 0 && !k.Other || k.Remaining == 0:
			at = Later(at, k.reset)
		default:
			at = Later(at, l.left.Add(k.space(now, l.host.config.Pace)))
		}
	}
	return at
}

// Later is the later of two.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// space is what the pace puts between two requests, while any remain. Gently: none
// above the half; above the eighth what the policy gives in the long run, where
// that is known, which a bucket and a sliding window give back as it goes; below
// it what remains, spread.
func (k *known) space(now time.Time, pace Pace) time.Duration {
	left := k.reset.Sub(now)
	switch {
	case k.Other || k.left <= 0 || left <= 0 || pace == Free:
		return 0
	case pace == Strict:
		return left / time.Duration(k.left)
	case k.left > k.Limit/2:
		return 0
	}
	space := min(left/time.Duration(k.left), gentleMost)
	if k.left > k.Limit/8 && k.Window > 0 {
		space = min(space, k.Window/time.Duration(k.Limit))
	}
	return space
}

// interval is the time in which the tightest policy, as far as is known, gives
// one more; 0 where none is known.
func (l *Lane) interval() (most time.Duration) {
	for i := range l.hints {
		if k := &l.hints[i]; !k.Other && k.Limit > 0 && k.Window > 0 {
			most = max(most, k.Window/time.Duration(k.Limit))
		}
	}
	return most
}
