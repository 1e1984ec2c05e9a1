package client

import (
	"time"

	"github.com/comporta/comporta/internal/manners"
)

// Learn takes what a server says outside an attempt, as at the end of a stream
// that it had accepted: it shuts the gate and sets the pace, and counts as no
// attempt.
func (c *Caller) Learn(target, partition string, a Answer) {
	r := &run{caller: c, call: &Call{Target: target, Partition: partition}}
	c.mu.Lock()
	r.line = c.line(target, partition)
	r.learn(&a, func(at time.Time, m *manners.Answer) { r.line.lane.Hear(at, m) })
	c.mu.Unlock()
	r.tell()
}

// learn lets the lane learn from an answer, as of when it came, and tells of what
// comes of it: those in line, and the hook.
func (r *run) learn(a *Answer, hear func(time.Time, *manners.Answer)) {
	at, lane := now(), r.line.lane
	shut, m := lane.Told(), a.manners()
	if a.received.IsZero() {
		a.received = at
	}
	hear(a.received, &m)
	if len(a.Hints) > 0 {
		r.note(Event{What: Learnt})
	}
	if told := lane.Told(); told.After(shut) && told.After(at) {
		r.caller.stats.Gates++
		r.note(Event{What: GateShut, Wait: told.Sub(at)})
		r.line.wakeLate(at, r.caller.config.MaxWait)
	}
	r.line.wakeFirst()
}
