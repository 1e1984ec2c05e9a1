package manners

import "time"

// A budget bounds the retries to one host: a bucket of whole retries. Each first
// attempt puts Percent of one in, each second puts one in, and it holds Reserve.
type budget struct {
	tokens float64
	at     time.Time
}

func (b *budget) refill(c *Config, now time.Time) {
	if b.at.IsZero() {
		b.tokens = c.Reserve
	} else if passed := now.Sub(b.at); passed > 0 {
		b.tokens = min(c.Reserve, b.tokens+passed.Seconds())
	}
	b.at = now
}

// earn counts a first attempt.
func (b *budget) earn(c *Config, now time.Time) {
	b.refill(c, now)
	b.tokens = min(c.Reserve, b.tokens+c.Percent/100)
}

// spend takes one retry, if there is one.
func (b *budget) spend(c *Config, now time.Time) bool {
	if c.Percent < 0 {
		return true
	}
	b.refill(c, now)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
