package probe

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The pictures of the page: their plots' width, and where they begin.
const (
	plotWidth = 840.0
	plotLeft  = 30.0
)

// drawRequests draws the shots over time: what passed above the line, what was
// refused below it, on a scale of square roots.
func (r *Report) drawRequests() (svg string, column time.Duration) {
	const columns, high = 200, 70.0
	passed, refused, took := r.columns(columns)
	most := 1
	for i := range passed {
		most = max(most, passed[i], refused[i])
	}
	var b strings.Builder
	line := high + 12
	frame(&b, 2*high+44, 10, line+high+4, took.Seconds(), "requests over time")
	bar := func(i, n int, up bool, class string) {
		if n == 0 {
			return
		}
		h := max(math.Sqrt(float64(n)/float64(most))*high, 1.5)
		y := line + 0.5
		if up {
			y = line - h - 0.5
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%d</title></rect>`, class, plotLeft+plotWidth*float64(i)/columns, y, plotWidth/columns*0.85, h, n)
	}
	for i := range passed {
		bar(i, passed[i], true, "in")
		bar(i, refused[i], false, "out")
	}
	fmt.Fprintf(&b, `<path class="axis" d="M%.1f %.1fH%.1f"/>`, plotLeft, line, plotLeft+plotWidth)
	fmt.Fprintf(&b, `<text x="%.1f" y="16" text-anchor="end">%d</text><text x="%.1f" y="%.1f" text-anchor="end">%d</text></svg>`, plotLeft-4, most, plotLeft-4, line+high, most)
	return b.String(), took / columns
}

// frame begins a picture: lines for the time, from top to bottom, and their numbers.
func frame(b *strings.Builder, height, top, bottom, took float64, label string) {
	fmt.Fprintf(b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, plotLeft+plotWidth+10, height, label)
	for i := range 6 {
		x := plotLeft + plotWidth*float64(i)/5
		anchor := "middle"
		if i == 5 {
			anchor = "end"
		}
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %.1fV%.1f"/><text x="%.1f" y="%.1f" text-anchor="%s">%.3g s</text>`, x, top, bottom, x, bottom+16, anchor, took*float64(i)/5)
	}
}

// drawWindows draws how many of the user's own requests passed within the window
// before each instant, and the limit as a line: where the curve is over it, more than
// the limit passed within one window.
func (r *Report) drawWindows() string {
	const high = 110.0
	f := r.Finding
	window := time.Duration(f.Window.Low * float64(time.Second))
	var at []time.Time
	for i := range r.Shots {
		if s := &r.Shots[i]; s.Admitted() && s.Request.Identity == 0 {
			at = append(at, s.Received)
		}
	}
	if len(at) == 0 || window <= 0 {
		return ""
	}
	slices.SortFunc(at, time.Time.Compare)
	began, took := r.Shots[0].Sent, time.Duration(0)
	for _, s := range r.Shots {
		took = max(took, s.Received.Sub(began))
	}
	// A step up at each request, and down a window later.
	type step struct {
		at time.Duration
		by int
	}
	var steps []step
	for _, t := range at {
		steps = append(steps, step{t.Sub(began), 1}, step{t.Sub(began) + window, -1})
	}
	slices.SortStableFunc(steps, func(a, b step) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return a.by - b.by
	})
	top, n := int(f.Units.Value), 0
	for _, s := range steps {
		n += s.by
		top = max(top, n)
	}
	y := func(n float64) float64 { return 10 + high - high*n/float64(max(top, 1))*0.94 }
	x := func(at time.Duration) float64 {
		return plotLeft + plotWidth*float64(min(at, took))/float64(max(took, 1))
	}
	var b strings.Builder
	frame(&b, high+32, 10, 10+high, took.Seconds(), "passed within a window")
	fmt.Fprintf(&b, `<path class="area" d="M%.1f %.1f`, plotLeft, y(0))
	n = 0
	last := -1.0
	for i, s := range steps {
		n += s.by
		if s.at > took {
			break
		}
		if i+1 < len(steps) && x(steps[i+1].at)-x(s.at) < 0.05 && x(s.at) == last { // nobody sees it
			continue
		}
		last = x(s.at)
		fmt.Fprintf(&b, "H%.1fV%.1f", last, y(float64(n)))
	}
	fmt.Fprintf(&b, `H%.1fV%.1fZ"/>`, plotLeft+plotWidth, y(0))
	limit := y(f.Units.Value)
	fmt.Fprintf(&b, `<path class="limit" d="M%.1f %.1fH%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%.0f</text>`, plotLeft, limit, plotLeft+plotWidth, plotLeft-4, limit+4, f.Units.Value)
	if y(float64(top)) < limit-12 {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="end">%d</text>`, plotLeft-4, y(float64(top))+4, top)
	}
	fmt.Fprintf(&b, `<path class="axis" d="M%.1f %.1fH%.1f"/></svg>`, plotLeft, y(0), plotLeft+plotWidth)
	return b.String()
}
