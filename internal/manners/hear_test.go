package manners

import (
	"testing"
	"time"
)

// What comes at the end of a stream shuts the gate and sets the pace, as an answer
// does, but was no attempt.
func TestHear(t *testing.T) {
	for _, c := range []struct {
		name  string
		said  Answer
		after time.Duration
		why   Why
	}{
		{"refused", Answer{Kind: Refused, Told: true, Wait: 5 * time.Second}, 5 * time.Second, Gate},
		{"refused, no time told", Answer{Kind: Refused}, 500 * time.Millisecond, Gate},
		{"overloaded", Answer{Kind: Overloaded, Told: true, Wait: 5 * time.Second}, 5 * time.Second, Gate},
		{"overloaded, no time told", Answer{Kind: Overloaded}, 0, None},
		{"nothing remains", Answer{Hints: []Hint{{Policy: "p", Limit: 10, Remaining: 0, Reset: 7 * time.Second}}}, 7 * time.Second, Pacing},
		{"nothing", Answer{}, 0, None},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := NewHost(config()).Lane()
			send(l, start, Answer{})
			l.Hear(start, &c.said)
			wantTurn(t, l, start, c.after, c.why)
			if l.number != 1 || l.underWay != 0 {
				t.Errorf("%d attempts, %d under way; want the first alone", l.number, l.underWay)
			}
		})
	}
}

// A word that was late does not count twice: what an attempt refused has shut the
// gate already.
func TestHearCountsARefusalOnce(t *testing.T) {
	l := NewHost(config()).Lane()
	send(l, start, Answer{Kind: Refused, Told: true, Wait: time.Second})
	space := l.space
	l.Hear(start, &Answer{Kind: Refused, Told: true, Wait: time.Second})
	if l.refusals != 1 || l.space != space {
		t.Errorf("%d refusals, %v between two; want 1, %v", l.refusals, l.space, space)
	}
}
