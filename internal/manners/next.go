package manners

import "time"

// A Try is a request of which an attempt has come back.
type Try struct {
	// Attempts made.
	Attempts int
	// Prev is the wait before the last attempt; decorrelated jitter wants it.
	Prev time.Duration
	// Repeat: the request may be sent again though the server may have acted on it.
	// Resend: it may be sent again where the server did not act, or says that it may.
	Repeat, Resend bool
	// Deadline is when the caller gives up; zero is never.
	Deadline time.Time
}

// Next says whether a request is sent again after an answer: where why is None,
// after at least wait; else why not. It is asked after Back, once for each answer
// that is not Accepted, and spends from the budget.
func (l *Lane) Next(now time.Time, t *Try, a *Answer) (wait time.Duration, why Why) {
	c := l.host.config
	wait = l.wait(t, a)
	if a.Kind == Refused && !a.Told {
		l.shut(now.Add(wait), 0)
	}
	switch allowed := t.Repeat || t.Resend && (a.Kind == Refused || a.Word == Again); {
	case a.Kind == Accepted || a.Kind == Cancelled || !a.Retryable:
		return 0, Final
	case a.Word == Never:
		return 0, Forbidden
	case a.Told && a.Wait > c.MaxWait || l.told.Sub(now) > c.MaxWait:
		return 0, TooLong
	case !allowed:
		return 0, Unsafe
	case t.Attempts >= c.Attempts:
		return 0, Attempts
	}
	wait = max(wait, l.opens.Sub(now))
	if !t.Deadline.IsZero() && !now.Add(wait).Before(t.Deadline) {
		// What jitter adds is not worth the request: the time that was told is enough.
		if wait = max(a.Wait, l.opens.Sub(now), leastWait); !a.Told || !now.Add(wait).Before(t.Deadline) {
			return 0, Late
		}
	}
	if !l.host.budget.spend(c, now) {
		return 0, Spent
	}
	return wait, None
}

// wait is the wait before the next attempt: the backoff where nothing was told, or
// next to nothing; else the time told and, the more often it was in vain, the more
// on top.
func (l *Lane) wait(t *Try, a *Answer) time.Duration {
	c := l.host.config
	n := t.Attempts
	if a.Kind == Refused {
		n = max(n, l.refusals)
	}
	if !a.Told || a.Wait < time.Second {
		return max(a.Wait, c.Backoff.Wait(n, t.Prev, c.Random), leastWait)
	}
	if a.Wait > c.MaxWait {
		return a.Wait
	}
	// At most eight times as long: who was told a second often must not sleep on while
	// others pass.
	most := min(c.Backoff.step(n), 8*min(a.Wait, c.Backoff.Cap))
	return a.Wait + c.Backoff.above(most, c.Random)
}

// A Why says what holds a request, or ends it.
type Why uint8

const (
	// None: nothing does.
	None Why = iota
	// Gate: the server said when to come again. Spacing: others leave first, one by
	// one. Pacing: what remains is spread. Start: nothing has been heard yet.
	Gate
	Spacing
	Pacing
	Start
	// Attempts were used up.
	Attempts
	// Spent is the budget of retries.
	Spent
	// Unsafe: the server may have acted, and the request may not act twice; or it
	// cannot be sent twice.
	Unsafe
	// Forbidden: the server said not to try again.
	Forbidden
	// TooLong: the time told is over MaxWait. Late: it is past the deadline.
	TooLong
	Late
	// Final: an answer that trying again does not change.
	Final
)
