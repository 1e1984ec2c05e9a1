package sim

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta"
)

// MaxArrivals is the largest number of arrivals that one simulation takes.
const MaxArrivals = 100_000

// longest is how late an arrival may be, so that all sums of times fit.
const longest = 100 * 365 * 24 * time.Hour

// A Burst is a number of arrivals that were written as one.
type Burst struct {
	Count int
	// At is when the first arrives, after time 0.
	At time.Duration
	// Every is the time from each to the next; 0 means all at once.
	Every time.Duration
	// Cost is what each asks for, in units.
	Cost int64
}

// Last is when the last one arrives.
func (b Burst) Last() time.Duration { return b.At + time.Duration(b.Count-1)*b.Every }

// String is the burst's time as people write it: "2s", or "0s … 10s".
func (b Burst) String() string {
	if b.Last() == b.At {
		return timeText(b.At)
	}
	return timeText(b.At) + " … " + timeText(b.Last())
}

// ParseBursts reads arrivals as people write them:
//
//	arrivals = burst { "," burst }
//	burst    = COUNT "@" TIME [ "every" TIME ] [ "cost" UNITS ]
//	TIME     = 0 | 2s | 59.9s | 1m30s | 500ms | 250us | 7d
//
// So "7@0s, 3@2s" is seven at once and three more two seconds later, and
// "30@0s every 100ms cost 2" is thirty, one each 100 ms, of two units each. A
// burst that names no cost has the one given. The arrivals are at most MaxArrivals.
func ParseBursts(text string, cost int64) ([]Burst, error) {
	if err := comporta.CheckCost(cost); err != nil {
		return nil, err
	}
	var bursts []Burst
	total := 0
	for item := range strings.SplitSeq(text, ",") {
		b, err := parseBurst(strings.TrimSpace(item), cost)
		if err != nil {
			return nil, err
		}
		if total += b.Count; total > MaxArrivals {
			return nil, fmt.Errorf("more than %d arrivals: simulate fewer, or a shorter time", MaxArrivals)
		}
		bursts = append(bursts, b)
	}
	return bursts, nil
}

func parseBurst(text string, cost int64) (Burst, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Burst{}, fmt.Errorf("an arrival is empty: write them like 7@0s,3@2s")
	}
	count, at, found := strings.Cut(words[0], "@")
	if !found {
		return Burst{}, fmt.Errorf("%q is no arrival: write COUNT@TIME, like 7@0s", text)
	}
	n, err := strconv.ParseUint(strings.ReplaceAll(count, "_", ""), 10, 31)
	if err != nil || n < 1 || n > MaxArrivals {
		return Burst{}, fmt.Errorf("%q: the count %q is no whole number from 1 to %d", text, count, MaxArrivals)
	}
	b := Burst{Count: int(n), Cost: cost}
	if b.At, err = ParseTime(at); err != nil {
		return Burst{}, fmt.Errorf("%q: %w", text, err)
	}
	for pair := range slices.Chunk(words[1:], 2) {
		if len(pair) != 2 {
			return Burst{}, fmt.Errorf("%q: %q is not understood: write COUNT@TIME, then \"every TIME\" or \"cost UNITS\"", text, pair[0])
		}
		switch pair[0] {
		case "every":
			if b.Every, err = ParseTime(pair[1]); err != nil {
				return Burst{}, fmt.Errorf("%q: %w", text, err)
			}
		case "cost":
			b.Cost, err = strconv.ParseInt(strings.ReplaceAll(pair[1], "_", ""), 10, 64)
			if err == nil {
				err = comporta.CheckCost(b.Cost)
			}
			if err != nil {
				return Burst{}, fmt.Errorf("%q: the cost %q is no whole number from 0 to 2^53 − 1", text, pair[1])
			}
		default:
			return Burst{}, fmt.Errorf("%q: the word %q is not understood: use \"every TIME\" or \"cost UNITS\"", text, pair[0])
		}
	}
	if b.At > longest || b.Every > longest || b.Every > 0 && int64(b.Count-1) > int64((longest-b.At)/b.Every) {
		return Burst{}, fmt.Errorf("%q ends later than 100 years", text)
	}
	return b, nil
}

// fractional is a duration of one unit with a decimal point, such as 59.9s.
var fractional = regexp.MustCompile(`^(\d+)\.(\d{1,15})(w|d|h|m|s|ms|us)$`)

// ParseTime reads a time after 0: a duration as limits have it, such as 1m30s or
// 7d, or 0, or one unit with a decimal point, such as 59.9s. It is a whole number
// of microseconds.
func ParseTime(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	parts := fractional.FindStringSubmatch(text)
	if parts == nil {
		return parseWhole(text)
	}
	whole, err := parseWhole(parts[1] + parts[3])
	if err != nil {
		return 0, err
	}
	unit, err := parseWhole("1" + parts[3])
	if err != nil {
		return 0, err
	}
	// A digit after the point is a tenth of what the one before it stands for.
	for _, digit := range strings.TrimRight(parts[2], "0") {
		if unit%(10*time.Microsecond) != 0 {
			return 0, fmt.Errorf("%q is not a whole number of microseconds", text)
		}
		unit /= 10
		whole += time.Duration(digit-'0') * unit
	}
	if whole < 0 {
		return 0, fmt.Errorf("%q is too long", text)
	}
	return whole, nil
}

func parseWhole(text string) (time.Duration, error) {
	d, err := comporta.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no time: write it like 0, 2s, 59.9s, 1m30s, 500ms or 7d", text)
	}
	return d, nil
}

// ParseStart reads what instant time 0 is: a time after the epoch, where windows
// are aligned, or a date such as 2026-10-25T00:30:00+02:00.
func ParseStart(text string) (comporta.Instant, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return comporta.InstantOf(t), nil
	}
	d, err := ParseTime(text)
	if err != nil {
		return 0, fmt.Errorf("%q is neither a time like 30s nor a date like 2026-10-25T00:30:00+02:00", text)
	}
	return comporta.Instant(0).Add(d), nil
}

// An arrival is one request that arrives.
type arrival struct {
	at    time.Duration
	cost  int64
	burst int // index of its burst
}

// arrivals are those of all bursts in order of time; those of one instant in the
// order in which they were written.
func arrivals(bursts []Burst) []arrival {
	var all []arrival
	for i, b := range bursts {
		for n := range b.Count {
			all = append(all, arrival{b.At + time.Duration(n)*b.Every, b.Cost, i})
		}
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return all
}

// timeText is a time as axes and tables show it: exact, in seconds under two
// minutes, without zeros that say nothing.
func timeText(d time.Duration) string {
	switch {
	case d == comporta.Never:
		return "never"
	case d == 0:
		return "0s"
	case d >= time.Second && d < 2*time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
	case d < time.Second:
		return d.String()
	}
	text := d.String()
	if whole, ok := strings.CutSuffix(text, "m0s"); ok {
		text = whole + "m"
	}
	if whole, ok := strings.CutSuffix(text, "h0m"); ok {
		text = whole + "h"
	}
	return text
}

// unitsText is a number of units; the largest stands for no limit at all.
func unitsText(n int64) string {
	if n == math.MaxInt64 {
		return "∞"
	}
	return strconv.FormatInt(n, 10)
}
