package client

import (
	"github.com/comporta/comporta/internal/manners"
)

// A host is a server, with what is counted apart there.
type host struct {
	*manners.Host
	lines map[string]*line
}

// maxLines bounds what is remembered of servers and their partitions: when there
// are more, those of which nothing is known any more make room, else those that
// nobody waits for and whose gate is open. Only shut gates and calls under way are
// kept beyond it.
const maxLines = 10_000

// line is where a call to a server stands. The caller's lock is held.
func (c *Caller) line(target, partition string) *line {
	h := c.hosts[target]
	if h == nil {
		h = &host{Host: manners.NewHost(&c.config), lines: map[string]*line{}}
		c.hosts[target] = h
	}
	l := h.lines[partition]
	if l == nil {
		if c.lines >= maxLines {
			c.makeRoom(h)
		}
		l = &line{host: h, lane: h.Lane(), resting: map[*waiter]struct{}{}}
		h.lines[partition] = l
		c.lines++
	}
	return l
}

// makeRoom looks at some lines, in the map's own order of chance, and forgets
// what can be forgotten among them. keep is the host that is about to have one.
func (c *Caller) makeRoom(keep *host) {
	const looks = 64
	at, seen := now(), 0
	for name, h := range c.hosts {
		for partition, l := range h.lines {
			if seen++; seen > looks {
				return
			}
			if l.users > 0 || l.lane.Told().After(at) || seen < looks/2 && !l.lane.Idle(at) {
				continue
			}
			delete(h.lines, partition)
			c.lines--
		}
		if len(h.lines) == 0 && h != keep {
			delete(c.hosts, name)
		}
	}
}
