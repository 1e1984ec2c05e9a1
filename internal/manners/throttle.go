package manners

import "time"

// A throttle is the caller's half of adaptive throttling: it refuses requests
// with the probability max(0, (requests − K·accepts) / (requests + 1)) over the
// last two minutes.
//
// Source: Site Reliability Engineering (O'Reilly, 2016), chapter 21, Client-Side
// Throttling.
type throttle struct {
	slots [throttleSlots]struct{ requests, accepts int64 }
	slot  int64 // the number of the newest, in slots since the first request
	began time.Time
}

const (
	throttleSlots = 12
	throttleSlot  = 10 * time.Second
	// Fewer requests than these say nothing, and some always go, to see whether the
	// server is well again.
	throttleLeast = 10
	throttleMost  = 0.9
)

// turn forgets what is older than the window.
func (t *throttle) turn(now time.Time) {
	if t.began.IsZero() {
		t.began = now
	}
	slot := max(t.slot, int64(now.Sub(t.began)/throttleSlot))
	if slot-t.slot >= throttleSlots {
		clear(t.slots[:])
		t.slot = slot
	}
	for t.slot < slot {
		t.slot++
		t.slots[t.slot%throttleSlots].requests, t.slots[t.slot%throttleSlots].accepts = 0, 0
	}
}

func (t *throttle) accepted(now time.Time) {
	t.turn(now)
	t.slots[t.slot%throttleSlots].accepts++
}

// refuses counts a request and says whether it is not to be sent.
func (t *throttle) refuses(c *Config, now time.Time) bool {
	t.turn(now)
	var requests, accepts int64
	for _, s := range t.slots {
		requests, accepts = requests+s.requests, accepts+s.accepts
	}
	t.slots[t.slot%throttleSlots].requests++
	if requests < throttleLeast {
		return false
	}
	p := (float64(requests) - c.K*float64(accepts)) / float64(requests+1)
	return p > 0 && c.Random() < min(p, throttleMost)
}
