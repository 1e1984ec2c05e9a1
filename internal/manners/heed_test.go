package manners

import (
	"testing"
	"time"
)

// What is heeded ahead of its Back shuts the gate at once, and is not counted, nor
// thrown dice for, twice.
func TestHeed(t *testing.T) {
	draws := 0.0
	c := config()
	c.Backoff.Jitter = Full
	c.Random = func() float64 { draws += 0.1; return draws }
	l := NewHost(c).Lane()
	refused := Answer{Kind: Refused, Told: true, Wait: 10 * time.Second}
	sent := l.Leave(start, false)
	l.Heed(start, sent, &refused)
	wantTurn(t, l, start, 10100*time.Millisecond, Gate)
	l.Back(start, sent, &refused)
	wantTurn(t, l, start, 10100*time.Millisecond, Gate)
	if l.refusals != 1 || l.underWay != 0 {
		t.Errorf("%d refusals, %d under way", l.refusals, l.underWay)
	}
}
