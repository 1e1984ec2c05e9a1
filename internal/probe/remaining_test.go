package probe

import (
	"testing"
	"time"

	"github.com/comporta/comporta/client"
)

// Of two that were sent together one may have to wait for its connection: what it
// took is told by when it left, and not by the order in which they were asked for.
func TestRemainingByTheClock(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	shot := func(sent, status int, remaining int64) Shot {
		at := began.Add(time.Duration(sent) * time.Millisecond)
		return Shot{Sent: at, Received: at.Add(5 * time.Millisecond), Status: status, Request: &Request{}, Hints: []client.Hint{{Unit: "requests", Remaining: remaining}}}
	}
	p := &prober{learned: []Shot{shot(20, 200, 0), shot(0, 200, 1), shot(30, 429, 0)}, report: &Report{Finding: &Finding{}}}
	if c, err := p.remaining(); err != nil || c.Verdict != Good {
		t.Error(c, err)
	}
}
