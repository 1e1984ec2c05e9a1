package sim

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// The measures of a party's panel: the words, the tallest bar below them, and what
// is left free.
const (
	crowdHead = 38.0
	crowdHigh = 68.0
	crowdFree = 14.0
	crowdLeft = 64.0 // of the plots; the scale stands left of it
	crowdTop  = 88.0 // of the first panel
	crowdMany = 400  // bars at most
)

// crowdStyle is what the picture has beside svgStyle.
const crowdStyle = `
.good{fill:#1a7f37;font-weight:600}.bad{fill:#cf222e;font-weight:600}.so{font-weight:600}
.rate{stroke:#0a3069;stroke-width:1;stroke-dasharray:4 3}
.halo{paint-order:stroke;stroke:#fff;stroke-width:3px}`

// crowdPicture is the picture as it is written.
type crowdPicture struct {
	svg
	report *CrowdReport
	step   time.Duration
	bars   [][]crowdBar
	wide   float64 // of a step
	most   float64 // of a bar
}

// WriteSVG draws the report as a picture: for each party what reaches the server
// in each step of time, admitted and refused. The scale is that of the square
// root, the same for all, so that ten and a thousand can both be seen.
func (r *CrowdReport) WriteSVG(w io.Writer) error {
	p := &crowdPicture{report: r, most: 1}
	p.step, p.bars = r.bars(crowdMany)
	long := 1
	for _, bars := range p.bars {
		long = max(long, len(bars))
		for _, b := range bars {
			p.most = max(p.most, float64(b.all()))
		}
	}
	p.wide = (svgRight - crowdLeft) / float64(long)
	p.axis = axis{0, time.Duration(long) * p.step}
	foot := crowdTop + float64(len(r.Parties))*(crowdHead+crowdHigh+crowdFree)
	height := foot + svgFoot + 20
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img">`+"\n", svgWidth, height, svgWidth, height)
	fmt.Fprintf(p, "<title>%s</title>\n<style>%s%s\n</style>\n", escape(r.title()), svgStyle, crowdStyle)
	fmt.Fprintf(p, `<rect x="0.5" y="0.5" width="%g" height="%g" rx="10" fill="#fff" stroke="#d0d7de"/>`+"\n", svgWidth-1, height-1)
	p.text(24, 38, "title", r.title())
	p.text(24, 62, "soft", fmt.Sprintf("what reaches the server in each %s, on a scale of square roots", timeText(p.step)))
	p.legend()
	for i := range r.Parties {
		p.panel(crowdTop+float64(i)*(crowdHead+crowdHigh+crowdFree), i)
	}
	for _, t := range p.axis.ticks(12) {
		p.text(p.x(t), foot+8, "soft small mid", timeText(t))
	}
	p.text(24, foot+34, "soft small", r.spikeText())
	p.WriteString("</svg>\n")
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("writing the picture: %w", err)
	}
	return nil
}

// x is where a time lies.
func (p *crowdPicture) x(t time.Duration) float64 {
	return crowdLeft + float64(t)/float64(p.step)*p.wide
}

// tall is the height of a number of attempts.
func (p *crowdPicture) tall(n float64) float64 { return math.Sqrt(n/p.most) * crowdHigh }

func (p *crowdPicture) legend() {
	x := svgRight
	for _, entry := range []struct {
		class, text string
		size        float64
	}{{"rate", "the limit's rate", 86}, {"no-thin", "refused", 44}, {"out", "admitted", 54}} {
		x -= entry.size
		p.text(x, 62, "small", entry.text)
		if entry.class == "rate" {
			p.line(x-25, 57.5, x-6, 57.5, "rate")
			x -= 42
			continue
		}
		p.rect(x-17, 52, 11, 11, entry.class)
		x -= 34
	}
}

// panel draws one party from top downward.
func (p *crowdPicture) panel(top float64, i int) {
	party, bars := p.report.Parties[i], p.bars[i]
	line := top + crowdHead + crowdHigh
	fmt.Fprintf(p, `<text x="24" y="%s" class="soft"><tspan class="name" fill="#24292f">%s</tspan><tspan dx="10">%s</tspan></text>`+"\n", point(top+14), escape(party.Name), escape(party.Says))
	fmt.Fprintf(p, `<text x="%s" y="%s" class="end soft"><tspan class="%s">%s</tspan> refused per success%s</text>`+"\n",
		point(svgRight), point(top+14), map[ink]string{good: "good", bad: "bad", plain: "so"}[party.ink()], party.perSuccess(), escape(p.rest(party)))
	for _, t := range p.axis.ticks(12) {
		p.line(p.x(t), line-crowdHigh, p.x(t), line+4, "grid")
	}
	last := line
	for n := math.Pow(10, math.Floor(math.Log10(p.most))); n >= 1; n /= 10 {
		y := line - p.tall(n)
		if line-y < 7 || last < line && y-last < 11 {
			break
		}
		p.line(crowdLeft, y, svgRight, y, "grid")
		p.text(crowdLeft-8, y+4, "soft small end", thousands(int(n)))
		last = y
	}
	p.draw(line, bars)
	limit := p.report.Crowd.Limit
	if y := p.tall(float64(limit.Limit) * float64(p.step) / float64(limit.Window)); y >= 2 && y <= crowdHigh {
		p.line(crowdLeft, line-y, svgRight, line-y, "rate")
	}
	if n := tallestBar(bars); n >= 0 {
		p.text(p.x(time.Duration(n)*p.step), line-p.tall(float64(bars[n].all()))-4, "small halo", thousands(bars[n].all()))
	}
	p.line(crowdLeft-6, line, svgRight+6, line, "axis")
}

// rest is what is told of a party after its refusals.
func (p *crowdPicture) rest(party *Party) string {
	text := " · spike " + thousands(party.Spike)
	if party.Stopped {
		return text + fmt.Sprintf(" · stopped at %s of %s", thousands(party.Successes), thousands(party.wanted))
	}
	return text + " · done in " + waitText(party.Took)
}

// draw draws the bars as two paths, what was refused above what was admitted.
func (p *crowdPicture) draw(line float64, bars []crowdBar) {
	var in, out strings.Builder
	wide := max(p.wide*0.8, 0.8)
	bar := func(b *strings.Builder, n int, from, to float64) {
		fmt.Fprintf(b, "M%s %sh%sV%sh-%sz", point(crowdLeft+float64(n)*p.wide+(p.wide-wide)/2), point(line-from), point(wide), point(line-to), point(wide))
	}
	for n, b := range bars {
		admitted, all := p.tall(float64(b.admitted)), p.tall(float64(b.all()))
		if b.admitted > 0 {
			bar(&in, n, 0, max(admitted, 1))
		}
		if b.refused > 0 {
			bar(&out, n, admitted, max(all, admitted+1))
		}
	}
	fmt.Fprintf(p, `<path d="%s" class="no-thin"/>`+"\n"+`<path d="%s" class="out"/>`+"\n", &out, &in)
}
