package config

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/comporta/comporta"
)

// A change is what other numbers make of a limit.
type change string

const (
	same     change = "changes nothing"
	loosens  change = "loosens"
	tightens change = "tightens"
	mixed    change = "loosens and tightens"
)

// A difference is how much two rules let through in a stretch of time.
type difference struct {
	in      time.Duration // atOnce for an instant
	was, is int64
}

const atOnce = time.Microsecond

// compare holds one rule against another by what each lets through at most: at once,
// and in stretches of time around their windows and far beyond. It loosens only
// where it lets through no less in any of them. The differences are one or two that
// show it.
func compare(was, is *comporta.Rule) (change, []difference) {
	var more, less []difference
	for _, in := range stretches(was, is) {
		switch d := (difference{in, was.Bound(in), is.Bound(in)}); {
		case d.is > d.was:
			more = append(more, d)
		case d.is < d.was:
			less = append(less, d)
		}
	}
	switch {
	case len(more) > 0 && len(less) > 0:
		return mixed, []difference{more[0], less[0]}
	case len(more) > 0 && more[0].is == math.MaxInt64:
		return loosens, more[:1]
	case len(more) > 0:
		return loosens, more[:min(2, len(more))]
	case len(less) > 0 && less[0].was == math.MaxInt64:
		return tightens, less[:1]
	case len(less) > 0:
		return tightens, less[:min(2, len(less))]
	}
	return same, nil
}

// stretches are those in which two rules are compared, the ones first that say
// most: an instant, their windows, a day, a year; then what lies at the boundaries
// of windows, since of fixed ones that differ in length now these let through more,
// now those.
func stretches(was, is *comporta.Rule) []time.Duration {
	wide := max(window(was), window(is))
	out := []time.Duration{atOnce, wide, min(window(was), window(is)), time.Second, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour, comporta.MaxFill}
	for _, w := range []time.Duration{window(was), window(is)} {
		for n := range time.Duration(16) {
			out = append(out, n*w+2*time.Microsecond, max(n*w, atOnce))
		}
	}
	return out
}

// window is a rule's, or about how long its period is; one that allows all or
// nothing has none.
func window(r *comporta.Rule) time.Duration {
	l := r.Limit()
	if l.Calendar == nil {
		return max(l.Window, atOnce)
	}
	days := map[comporta.Period]time.Duration{comporta.Day: 1, comporta.Week: 7, comporta.Month: 31, comporta.Year: 366}
	return days[l.Calendar.Period] * 24 * time.Hour
}

// changeWords says what numbers change, from what to what.
func changeWords(whose string, was, is *comporta.Rule) (change, string) {
	how, differences := compare(was, is)
	before := was.Limit()
	if how == same {
		return how, fmt.Sprintf("the same as %s's %v", whose, before)
	}
	said := fmt.Sprintf("%s %s's %v", how, whose, before)
	shown := make([]string, len(differences))
	for i, d := range differences {
		in := "at once"
		if d.in != atOnce {
			in = "in any " + span(d.in)
		}
		shown[i] = fmt.Sprintf("%s → %s %s", bounded(d.was), bounded(d.is), in)
	}
	return how, said + ": " + strings.Join(shown, ", ")
}

func bounded(n int64) string {
	if n == math.MaxInt64 {
		return "no bound"
	}
	return fmt.Sprint(n)
}
