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

// Behind a gate that an overload shut they leave one by one too; where no time was
// told there is no gate, and nothing to put between them.
func TestOverloadedLeaveSpaced(t *testing.T) {
	l := NewHost(config()).Lane()
	before := l.Leave(start, false)
	send(l, start, Answer{Kind: Overloaded})
	send(l, start, Answer{Kind: Overloaded, Told: true})
	wantTurn(t, l, start, 0, None)
	send(l, start, Answer{Kind: Overloaded, Told: true, Wait: 5 * time.Second})
	l.Back(start, before, &Answer{}) // says nothing of the time behind the gate
	now := start.Add(6 * time.Second)
	l.Leave(now, false)
	wantTurn(t, l, now, firstSpace, Spacing)
}

// Whoever is ready to wait for more than a day makes nobody else come earlier.
func TestGateAsLongAsMaxWait(t *testing.T) {
	c := config()
	c.MaxWait = 72 * time.Hour
	l := NewHost(c).Lane()
	send(l, start, Answer{Kind: Refused, Told: true, Wait: 48 * time.Hour})
	wantTurn(t, l, start, 48*time.Hour, Gate)
}

// However many policies a server names one after the other, the last is followed.
func TestPoliciesMakeRoom(t *testing.T) {
	l := NewHost(config()).Lane()
	now := start
	for i := range 3 * maxHints {
		now = now.Add(time.Second)
		send(l, now, Answer{Hints: []Hint{{Policy: string(rune('A' + i)), Limit: 5, Remaining: 4, Reset: 5 * time.Second, Window: -1}}})
	}
	send(l, now, Answer{Hints: []Hint{{Policy: "used up", Limit: 5, Remaining: 0, Reset: 5 * time.Second, Window: -1}}})
	wantTurn(t, l, now, 5*time.Second, Pacing)
	if len(l.hints) > maxHints {
		t.Error(len(l.hints))
	}
}
