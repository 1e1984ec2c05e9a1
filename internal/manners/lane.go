package manners

import "time"

// A Host is what all requests to one server share: the budget of retries and
// the share of requests that it accepts. A Host and its lanes are not safe for
// concurrent use.
type Host struct {
	config   *Config
	budget   budget
	throttle throttle
}

// NewHost is a server of which nothing is known. The config is not to change.
func NewHost(c *Config) *Host { return &Host{config: c} }

// Throttled says whether a request ought not to be sent, since the server refused
// too many (adaptive throttling). It counts the request; Back counts those that
// were accepted.
func (h *Host) Throttled(now time.Time) bool {
	return h.config.K > 0 && h.throttle.refuses(h.config, now)
}

const (
	// startMost is how many may leave at once, and again every startEvery, to a server
	// that has said nothing yet: its first answer may tell what it allows.
	startMost  = 16
	startEvery = 250 * time.Millisecond
	// firstSpace is put between those that a gate held, where the server's rate is not
	// known; refusals double it up to mostSpace, each acceptance lets one a second more
	// through, and below leastSpace there is none.
	firstSpace = 50 * time.Millisecond
	mostSpace  = time.Second
	leastSpace = 100 * time.Microsecond
	// longestGate bounds what one answer can do, unless MaxWait is longer: after a day
	// requests ask again, one by one.
	longestGate = 24 * time.Hour
	// leastWait is between two attempts of one request, whatever chance says.
	leastWait = 10 * time.Millisecond
)

// A Lane is what all requests to one server share that it counts together: one
// gate, one pace.
type Lane struct {
	host *Host

	// told is when the server said to come again, opens that with jitter.
	told, opens time.Time
	// refusals in a row, and the last attempt that had left at the last of them: what
	// left before does not count again.
	refusals int
	shutAt   int64

	space    time.Duration // between two that leave, after a gate
	left     time.Time     // when the last one left
	number   int64         // of attempts that left
	underWay int64         // of them
	hints    []known

	heard bool      // the server has answered
	began time.Time // when the first left
}

// Lane is a new lane of the host.
func (h *Host) Lane() *Lane { return &Lane{host: h} }

// A Turn says when the next request may leave: not after now is now. Why is what
// holds it. Must is when it might leave if nobody looked at what remains: the
// server's own word, and the spacing after it.
type Turn struct {
	At   time.Time
	Why  Why
	Must time.Time
}

// Ready says when the next request may leave. The answer holds until the next
// Leave or Back; ask again then, and when it comes.
func (l *Lane) Ready(now time.Time) (t Turn) {
	t = Turn{At: now, Must: now}
	hold := func(at time.Time, why Why) {
		if at.After(t.At) {
			t.At, t.Why = at, why
		}
	}
	if l.host.config.Pace != Free {
		if !l.heard && l.number >= startMost {
			hold(l.began.Add(time.Duration(l.number/startMost)*startEvery), Start)
		}
		hold(l.pace(now), Pacing)
	}
	if l.space > 0 {
		next := l.left.Add(l.space)
		hold(next, Spacing)
		t.Must = Later(t.Must, next)
	}
	hold(l.opens, Gate)
	t.Must = Later(t.Must, l.opens)
	return t
}

// Told is until when the server told not to call: the gate alone, without jitter,
// pace and spacing. Not after now is open.
func (l *Lane) Told() time.Time { return l.told }

// Space is the time between two that leave, as far as is known: what a place in
// line costs, after a gate and by the pace.
func (l *Lane) Space(now time.Time) (spacing, pacing time.Duration) {
	for i := range l.hints {
		pacing = max(pacing, l.hints[i].space(now, l.host.config.Pace))
	}
	return l.space, pacing
}

// A Sent stands for an attempt under way.
type Sent struct{ number int64 }

// Leave counts an attempt that is sent; again says that it is not the first of its
// request.
func (l *Lane) Leave(now time.Time, again bool) Sent {
	if l.number == 0 {
		l.began = now
	}
	if !again {
		l.host.budget.earn(l.host.config, now)
	}
	l.number++
	l.underWay++
	l.left = now
	for i := range l.hints {
		l.hints[i].left--
	}
	return Sent{l.number}
}

// Late says that an attempt which had left is only sent now: the next keep their
// distance from it.
func (l *Lane) Late(now time.Time) { l.left = now }

// Back takes the answer to an attempt, once for each.
func (l *Lane) Back(now time.Time, sent Sent, a *Answer) {
	l.underWay--
	switch a.Kind {
	case Cancelled:
		return
	case Accepted:
		l.host.throttle.accepted(now)
		if sent.number > l.shutAt {
			l.refusals = 0
			l.widen()
		}
	case Refused, Overloaded:
		l.Heed(now, sent, a)
	}
	if a.Kind != Failed || len(a.Hints) > 0 {
		l.heard = true
	}
	l.learn(now, sent, a.Hints)
}

// Hear takes what the server said outside an attempt, as at the end of a stream
// that it had accepted. It counts as no attempt, nor as one that was accepted.
func (l *Lane) Hear(now time.Time, a *Answer) {
	sent := Sent{l.number}
	if a.Kind == Refused || a.Kind == Overloaded {
		l.Heed(now, sent, a)
	}
	if a.Kind == Refused && !a.Told {
		l.shut(now.Add(l.wait(&Try{Attempts: 1}, a)), 0)
	}
	l.learn(now, sent, a.Hints)
}

// Heed takes a refusal, or an overload, and shuts the gate where a time was told.
// Back does so too: Heed is for one of which more is still to be read, which is
// then not counted twice.
func (l *Lane) Heed(now time.Time, sent Sent, a *Answer) {
	if a.Kind == Refused || a.Told && a.Wait > 0 {
		l.refused(sent)
	}
	wait := min(a.Wait, max(longestGate, l.host.config.MaxWait))
	if told := now.Add(wait); a.Told && told.After(l.told) {
		most := min(wait/10, 5*time.Second)
		l.shut(told, l.host.config.Backoff.above(most, l.host.config.Random))
	}
}

// refused counts a refusal, or an overload that shuts the gate, once for all that
// left before it was known.
func (l *Lane) refused(sent Sent) {
	if sent.number <= l.shutAt {
		return
	}
	l.shutAt = l.number
	l.refusals++
	if l.space > 0 {
		l.space = min(2*l.space, mostSpace)
	}
	l.spaceOut()
}

// widen lets one a second more leave.
func (l *Lane) widen() {
	l.space = time.Duration(float64(l.space) / (1 + l.space.Seconds()))
	if l.space < leastSpace {
		l.space = 0
	}
}

// spaceOut sets what stands between those that leave once a gate opens.
func (l *Lane) spaceOut() {
	if l.space > 0 {
		return
	}
	l.space = firstSpace
	if rate := l.interval(); rate > 0 {
		l.space = min(max(rate, leastSpace), mostSpace)
	}
}

// shut holds everything until told, and jitter longer. A gate only moves later.
func (l *Lane) shut(told time.Time, jitter time.Duration) {
	l.told = Later(l.told, told)
	l.opens = Later(l.opens, told.Add(jitter))
}

// Idle says that the lane knows nothing that a new one would not, and nothing is
// under way.
func (l *Lane) Idle(now time.Time) bool {
	if l.underWay > 0 || l.opens.After(now) || l.space > 0 && l.left.Add(mostSpace).After(now) {
		return false
	}
	for i := range l.hints {
		if l.hints[i].reset.After(now) {
			return false
		}
	}
	return true
}
