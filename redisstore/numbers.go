package redisstore

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta"
)

// The algorithms as the script knows them.
const (
	token uint8 = iota + 1
	leaky
	fixed
	counter
	slidingLog
	allowAll
	denyAll
)

// Flags of a rule that counts in windows.
const (
	staggered = 1
	calendar  = 2
)

// numbers are a rule as the script wants it.
type numbers struct {
	rule      *comporta.Rule
	algorithm uint8
	flags     uint8
	attempts  bool
	full      int64
	window    int64  // W in µs, 0 for a quota
	packed    []byte // but for a quota's windows
	// windows are a quota's present and next window, as of the last call.
	windows atomic.Pointer[[3]comporta.Instant]
}

func newNumbers(r *comporta.Rule, most int64) *numbers {
	l := r.Limit()
	n := &numbers{rule: r, full: r.Full(), window: l.Window.Microseconds(), attempts: l.Charge == comporta.Attempts}
	width := float64(n.window)
	switch {
	case l.Unlimited:
		n.algorithm = allowAll
	case !r.Counting():
		n.algorithm = denyAll
	case l.Calendar != nil:
		n.algorithm, n.flags = fixed, calendar
		width = fingerprint(l.Calendar)
	default:
		n.algorithm = map[comporta.Algorithm]uint8{
			comporta.TokenBucket: token, comporta.LeakyBucket: leaky, comporta.FixedWindow: fixed,
			comporta.SlidingCounter: counter, comporta.SlidingLog: slidingLog,
		}[l.Algorithm]
	}
	if l.Stagger {
		n.flags = staggered
	}
	b := append(n.packed, n.algorithm, n.flags)
	b = appendNumber(b, float64(l.Limit))
	b = appendNumber(b, width)
	switch n.algorithm {
	case token, leaky:
		us, ticks := r.TimeFor(n.full)
		for _, x := range [...]int64{n.full, r.Ticks(), us, ticks, l.MaxWait.Microseconds()} {
			b = appendNumber(b, float64(x))
		}
	case fixed:
		if n.flags != calendar {
			b = append(b, make([]byte, 3*8)...)
		}
	case slidingLog:
		b = appendNumber(b, float64(most))
	}
	n.packed = b
	return n
}

func appendNumber(b []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
}

// fingerprint is a number that stands for a calendar in a stored state: calendars
// that say the same have the same.
func fingerprint(c *comporta.Calendar) float64 {
	zone := c.Zone
	if zone == nil {
		zone = time.UTC
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%v %d:%d %d %d %d %s", c.Period, c.Hour, c.Minute,
		max(c.Weekday, 1), max(c.MonthDay, 1), max(c.YearMonth, time.January), zone))
	return float64(binary.BigEndian.Uint64(sum[:]) >> 16)
}

// append packs the rule for a call at about now.
func (n *numbers) append(b []byte, now comporta.Instant) []byte {
	b = append(b, n.packed...)
	if n.flags == calendar {
		for _, at := range n.around(now) {
			b = appendNumber(b, float64(at))
		}
	}
	return b
}

// around are the start of a quota's window at now, its end, and that of the next.
func (n *numbers) around(now comporta.Instant) [3]comporta.Instant {
	if w := n.windows.Load(); w != nil && w[0] <= now && now < w[1] {
		return *w
	}
	start, end := n.rule.WindowOf(now, 0)
	_, next := n.rule.WindowOf(end, 0)
	w := [3]comporta.Instant{start, end, next}
	n.windows.Store(&w)
	return w
}

// offset is how far stagger moves a key's windows.
func (n *numbers) offset(phase uint64) float64 {
	if n.flags != staggered {
		return 0
	}
	return float64(phase % uint64(n.window))
}

// cost is a cost as the script wants it: to a bucket as time, below 0 where it is
// over what a full budget holds.
func (n *numbers) cost(units int64) (x, y float64) {
	switch {
	case n.algorithm > leaky:
		return float64(units), 0
	case units > n.full:
		return -1, 0
	}
	us, ticks := n.rule.TimeFor(units)
	return float64(us), float64(ticks)
}

// The ways that a settlement goes.
const (
	givesBack = iota
	owes
	owesAll // down to one full budget below empty, or further
)

// difference is what a settlement changes, as the script wants it.
func (n *numbers) difference(s *comporta.Settlement) (way uint8, x, y float64) {
	more := s.Actual - s.Taken.Cost
	switch {
	case n.algorithm > leaky:
		return givesBack, float64(-more), 0
	case more >= 2*n.full:
		return owesAll, 0, 0
	case more > 0:
		way = owes
	default:
		more = -more
	}
	us, ticks := n.rule.TimeFor(more)
	return way, float64(us), float64(ticks)
}
