package sim

import (
	"fmt"
	"io"
	"math"
	"time"
)

// crowdHigh is the height of a panel's bars, and crowdHead that of the words above
// them.
const (
	crowdHigh = 74.0
	crowdHead = 30.0
	crowdStep = 100 * time.Millisecond // what one bar counts
)

// WriteSVG draws the report as a picture: for each kind of caller what reaches the
// server in each tenth of a second, admitted and refused. The scale is that of the
// square root, the same for all, so that one a second and a thousand can both be
// seen.
func (r *CrowdReport) WriteSVG(w io.Writer) error {
	last, most := time.Duration(0), 1.0
	counts := make([][][2]int, len(r.Runs))
	for i, run := range r.Runs {
		counts[i] = run.steps()
		last = max(last, time.Duration(len(counts[i]))*crowdStep)
		for _, n := range counts[i] {
			most = max(most, float64(n[0]+n[1]))
		}
	}
	s := &svg{}
	width := (svgRight - 24) / float64(max(last/crowdStep, 1))
	height := svgTop + float64(len(r.Runs))*(crowdHead+crowdHigh+14) + svgFoot
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img">`+"\n", svgWidth, height, svgWidth, height)
	fmt.Fprintf(s, "<title>%s</title>\n<style>%s\n</style>\n", escape(r.title()), svgStyle)
	fmt.Fprintf(s, `<rect x="0.5" y="0.5" width="%g" height="%g" rx="10" fill="#fff" stroke="#d0d7de"/>`+"\n", svgWidth-1, height-1)
	s.text(24, 38, "title", r.title())
	s.text(24, 62, "soft", "requests that reach the server in each tenth of a second, on a scale of square roots")
	x := svgRight
	foot := svgTop + float64(len(r.Runs))*(crowdHead+crowdHigh+14)
	for _, t := range crowdTicks(last) {
		x := 24 + float64(t/crowdStep)*width
		for i := range r.Runs {
			line := svgTop + crowdHead + crowdHigh + float64(i)*(crowdHead+crowdHigh+14)
			s.line(x, line-crowdHigh, x, line+4, "grid")
		}
		s.text(x, foot+10, "soft small mid", timeText(t))
	}
	for _, entry := range []struct{ class, text string }{{"no-thin", "refused"}, {"out", "admitted"}} {
		x -= 58
		s.text(x, 62, "small", entry.text)
		s.rect(x-17, 52, 11, 11, entry.class)
		x -= 34
	}
	top := svgTop
	for i, run := range r.Runs {
		s.text(24, top+14, "name", run.name())
		s.text(222, top+14, "soft small", run.Says)
		s.text(svgRight, top+14, "soft end", fmt.Sprintf("%.2f refused per success, %s", run.RefusedPerDone(), secondsText(run.Took)))
		line := top + crowdHead + crowdHigh
		tallest := 0
		for n, c := range counts[i] {
			x := 24 + float64(n)*width
			all, in := math.Sqrt(float64(c[0]+c[1])/most)*crowdHigh, math.Sqrt(float64(c[0])/most)*crowdHigh
			if c[1] > 0 {
				s.rect(x, line-all, max(width*0.8, 1), all-in, "no-thin")
			}
			if c[0] > 0 {
				s.rect(x, line-in, max(width*0.8, 1), in, "out")
			}
			if c[0]+c[1] > counts[i][tallest][0]+counts[i][tallest][1] {
				tallest = n
			}
		}
		if len(counts[i]) > 0 {
			c := counts[i][tallest]
			s.text(24+float64(tallest)*width, line-math.Sqrt(float64(c[0]+c[1])/most)*crowdHigh-4, "small", fmt.Sprint(c[0]+c[1]))
		}
		s.line(20, line, svgRight, line, "axis")
		top = line + 14
	}
	s.WriteString("</svg>\n")
	if _, err := w.Write(s.Bytes()); err != nil {
		return fmt.Errorf("writing the picture: %w", err)
	}
	return nil
}

// steps counts what came in each crowdStep: admitted, refused.
func (r *CrowdRun) steps() (steps [][2]int) {
	for _, c := range r.came {
		n := int(c.at / crowdStep)
		for len(steps) <= n {
			steps = append(steps, [2]int{})
		}
		if c.allowed {
			steps[n][0]++
		} else {
			steps[n][1]++
		}
	}
	return steps
}

// crowdTicks are some round times up to last.
func crowdTicks(last time.Duration) (ticks []time.Duration) {
	every := time.Second
	for _, factor := range []time.Duration{2, 5, 10, 30, 60, 300, 3600} {
		if last/every > 12 {
			every = factor * time.Second
		}
	}
	for t := time.Duration(0); t <= last; t += every {
		ticks = append(ticks, t)
	}
	return ticks
}
