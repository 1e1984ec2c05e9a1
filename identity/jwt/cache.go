package jwt

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/comporta/comporta/identity"
)

// digest is the SHA-256 of a token: what is remembered is no credential.
type digest [sha256.Size]byte

// digestOf allocates nothing for tokens as long as most are.
func digestOf(token string) digest {
	var room [2 << 10]byte
	return sha256.Sum256(append(room[:0], token...))
}

// proved is what a verified token proves, and when.
type proved struct {
	who         identity.Who
	from, until time.Time
}

// at is what the token proves at that time.
func (p *proved) at(now time.Time) (identity.Who, bool, error) {
	switch {
	case !now.Before(p.until):
		return identity.Who{}, false, errExpired
	case now.Before(p.from):
		return identity.Who{}, false, errEarly
	}
	return p.who, true, nil
}

// A cache remembers verified tokens: at least the half of its bound that was asked for
// last. It keeps two generations; when the young one is full, the old one is forgotten.
type cache struct {
	half int

	mu         sync.RWMutex
	young, old map[digest]*proved
}

func newCache(most int) *cache { return &cache{half: most / 2, young: map[digest]*proved{}} }

func (c *cache) get(d digest) *proved {
	c.mu.RLock()
	p, isYoung := c.young[d]
	if !isYoung {
		p = c.old[d]
	}
	c.mu.RUnlock()
	if !isYoung && p != nil {
		c.put(d, p)
	}
	return p
}

func (c *cache) put(d digest, p *proved) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= c.half {
		c.young, c.old = make(map[digest]*proved, c.half), c.young
	}
	c.young[d] = p
}

// size is how many are remembered; one in both generations counts twice.
func (c *cache) size() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.young) + len(c.old)
}
