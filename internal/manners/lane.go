package manners

import "time"

// A Host is what all requests to one server share: the budget of retries and
// the share of them that it accepts. A Host and its lanes are not safe for
// concurrent use.
type Host struct {
	config   *Config
	budget   budget
	throttle throttle
}

// NewHost is a server of which nothing is known. The config is not to change.
func NewHost(c *Config) *Host { panic("todo") }

// Throttled says whether a request ought not to be sent, since the server refused
// too many (adaptive throttling). It counts the request; one that is sent counts
// as accepted by Back.
func (h *Host) Throttled(now time.Time) bool { panic("todo") }

// A Lane is what all requests to one server share that are counted together by
// it: one gate, one pace.
type Lane struct {
	host *Host
}

// Lane is a new lane of the host.
func (h *Host) Lane() *Lane { panic("todo") }

// A Turn says when the next request may leave.
type Turn struct {
	// At is when; not after now means now. The zero At, with Why Start, means that
	// an answer must come first.
	At  time.Time
	Why Why
}

// Ready says when the next request may leave. The answer holds until the next
// Leave or Back; ask again then.
func (l *Lane) Ready(now time.Time) Turn { panic("todo") }

// Told is until when the server told not to call: the gate alone, without pace
// and spacing. Not after now is open.
func (l *Lane) Told() time.Time { panic("todo") }

// Space is the time between two that leave, as far as is known: what a place in
// line costs.
func (l *Lane) Space(now time.Time) time.Duration { panic("todo") }

// A Sent stands for an attempt under way.
type Sent struct{ number int64 }

// Leave counts an attempt that is sent. retry says that it is not the first of its
// request.
func (l *Lane) Leave(now time.Time, retry bool) Sent { panic("todo") }

// Back takes the answer to an attempt, once for each.
func (l *Lane) Back(now time.Time, sent Sent, a *Answer) { panic("todo") }

// Idle says that the lane knows nothing that a new one would not, and nothing is
// under way.
func (l *Lane) Idle(now time.Time) bool { panic("todo") }

// A Try is a request of which an attempt has come back.
type Try struct {
	// Attempts made.
	Attempts int
	// Prev is the wait before the last attempt; decorrelated jitter wants it.
	Prev time.Duration
	// Repeat: the request may be sent again though the server may have acted on it.
	// Resend: it may be sent again after a refusal. Neither: not at all, as where its
	// body is gone.
	Repeat, Resend bool
	// Deadline is when the caller gives up; zero is never.
	Deadline time.Time
}

// Next says whether a request is sent again after an answer, and after which wait
// at the earliest; where not, why. It is asked after Back, and spends from the
// budget.
func (l *Lane) Next(now time.Time, t *Try, a *Answer) (wait time.Duration, why Why) { panic("todo") }

// A Why says what holds a request, or ends it.
type Why uint8

const (
	// None: it may go, or was accepted.
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
