package sim

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// The picture's measures, in its own units.
const (
	svgWidth  = 860.0
	svgLeft   = 92.0  // of the plots; the words stand left of it
	svgRight  = 828.0 // of the plots
	svgTop    = 84.0  // of the first panel: title and legend stand above
	svgFoot   = 34.0  // below the last panel: the axis' times
	svgPlaces = 161   // places of bars on an axis
	svgNumber = 19.0  // room for a number at the end of a bar
)

// panel is the measure of one run's drawing: its name, the tallest bars above and
// below the axis, with room for a number at their ends, and what is left free.
type panel struct{ head, above, below, free float64 }

func (p panel) height() float64 { return p.head + p.above + p.below + p.free }

// svgStyle gives the picture its looks: on a white card of its own, so that it is
// read as well on a dark page.
const svgStyle = `
text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif;fill:#24292f}
.title{font-size:19px;font-weight:600}
.name{font-size:14px;font-weight:600}
.soft{fill:#57606a}
.small{font-size:11.5px}
.end{text-anchor:end}.mid{text-anchor:middle}
.in{fill:#8fb8e8}.out{fill:#1f6feb}
.no{fill:#ffebe9;stroke:#cf222e;stroke-width:1}.no-thin{fill:#f3a6a2}
.grid{stroke:#eaeef2}.axis{stroke:#57606a;stroke-width:1.2}`

// svg is a picture as it is written.
type svg struct {
	bytes.Buffer
	axis   axis
	panels panel   // the measure that all panels share
	wide   float64 // of a bar
	unit   float64 // height of one unit
}

// WriteSVG draws the report as a picture: for each run the arrivals above its
// axis, those denied outlined, and what was admitted below it at the time when it
// goes on.
func (r *Report) WriteSVG(w io.Writer) error {
	s := &svg{axis: r.axis()}
	title, tall := r.Runs[0].title(), 200.0
	if len(r.Runs) > 1 {
		s.panels = panel{head: 22, free: 12}
		title, tall = r.widest().String(), 52
	}
	all := make([][]bar, len(r.Runs))
	arrived, left, closest := 0.0, 0.0, svgPlaces
	for i, run := range r.Runs {
		all[i] = s.axis.bars(run, svgPlaces)
		for _, b := range all[i] {
			arrived, left = max(arrived, b.arrived), max(left, b.left)
		}
		closest = min(closest, gap(all[i]))
	}
	if most := max(arrived, left); most > 0 {
		s.unit = tall / most
	}
	s.panels.above, s.panels.below = arrived*s.unit+svgNumber, left*s.unit+svgNumber
	s.wide = min(max(float64(closest)*s.pitch()*0.72, 2.5), 22)
	height := svgTop + float64(len(r.Runs))*s.panels.height() + svgFoot
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img">`+"\n", svgWidth, height, svgWidth, height)
	fmt.Fprintf(s, "<title>%s</title>\n<style>%s\n</style>\n", escape(title), svgStyle)
	fmt.Fprintf(s, `<rect x="0.5" y="0.5" width="%g" height="%g" rx="10" fill="#fff" stroke="#d0d7de"/>`+"\n", svgWidth-1, height-1)
	s.text(24, 38, "title", title)
	s.text(24, 62, "soft", r.subtitle())
	s.legend(svgRight, 34)
	s.grid(svgTop, height-svgFoot-s.panels.free)
	for i, run := range r.Runs {
		s.panel(svgTop+float64(i)*s.panels.height(), run, all[i])
	}
	s.WriteString("</svg>\n")
	if _, err := w.Write(s.Bytes()); err != nil {
		return fmt.Errorf("writing the picture: %w", err)
	}
	return nil
}

// subtitle says what arrives, or how much of it one run admitted.
func (r *Report) subtitle() string {
	if len(r.Runs) == 1 {
		return r.Runs[0].share()
	}
	if len(r.Bursts) > 4 {
		return fmt.Sprintf("%d requests arrive", len(r.Runs[0].Answers))
	}
	parts := make([]string, len(r.Bursts))
	for i, b := range r.Bursts {
		parts[i] = fmt.Sprintf("%d at %v", b.Count, b)
	}
	return strings.Join(parts, ", ") + " arrive"
}

func (s *svg) pitch() float64 { return (svgRight - svgLeft) / (svgPlaces - 1) }

// x is where a place lies.
func (s *svg) x(place int) float64 { return svgLeft + float64(place)*s.pitch() }

func (s *svg) text(x, y float64, class, text string) {
	fmt.Fprintf(s, `<text x="%s" y="%s" class="%s">%s</text>`+"\n", point(x), point(y), class, escape(text))
}

func (s *svg) rect(x, y, w, h float64, class string) {
	fmt.Fprintf(s, `<rect x="%s" y="%s" width="%s" height="%s" rx="%s" class="%s"/>`+"\n", point(x), point(y), point(w), point(h), point(min(w, h, 6)/4), class)
}

func (s *svg) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(s, `<path d="M%s %sL%s %s" class="%s"/>`+"\n", point(x1), point(y1), point(x2), point(y2), class)
}

// legend stands to the left of x.
func (s *svg) legend(x, y float64) {
	for _, entry := range []struct {
		class, text string
		size        float64
	}{
		{"out", "admitted", 58},
		{"no", "denied", 46},
		{"in", "arrives", 46},
	} {
		x -= entry.size
		s.text(x, y, "small", entry.text)
		s.rect(x-17, y-10, 11, 11, entry.class)
		x -= 34
	}
}

// grid draws the ticks' lines through all panels, and their times below.
func (s *svg) grid(top, bottom float64) {
	for _, t := range s.axis.ticks(10) {
		x := s.x(s.axis.place(t, svgPlaces))
		s.line(x, top, x, bottom+4, "grid")
		s.text(x, bottom+20, "soft small mid", timeText(t))
	}
}

func (s *svg) panel(top float64, run *Run, bars []bar) {
	line := top + s.panels.head + s.panels.above
	if s.panels.head > 0 {
		s.text(24, top+16, "name", run.Limit.Algorithm.String())
		share := run.share()
		if len(run.Notes) > 0 {
			share = run.Limit.String() + ": " + share // not quite the limit in the title
		}
		s.text(svgRight, top+16, "soft end", share)
	}
	s.text(24, line-6, "soft small", "arrivals")
	s.text(24, line+15, "soft small", "admitted")
	most := tallest(bars)
	for place, b := range bars {
		x := s.x(place) - s.wide/2
		if b.arrived > 0 {
			s.bar(x, line, -1, 0, b.admitted, "in")
			s.bar(x, line, -1, b.admitted, b.arrived, s.denied())
			if s.roomFor(b.arrived) || b.arrived == most {
				s.text(x+s.wide/2, line-b.arrived*s.unit-5, "small mid", number(b.arrived))
				most = 0 // told once
			}
		}
		if b.left > 0 {
			s.bar(x, line, 1, 0, b.left, "out")
			if s.roomFor(b.left) {
				s.text(x+s.wide/2, line+b.left*s.unit+13, "small mid", number(b.left))
			}
		}
	}
	s.line(svgLeft-14, line, svgRight+14, line, "axis")
}

// bar draws the units from one count to another, upward from the line (-1) or
// downward (1): one by one where they are few.
func (s *svg) bar(x, line, up, from, to float64, class string) {
	piece := to - from
	if s.unit >= 5 {
		piece = 1
	}
	for ; from < to; from += piece {
		near, far := line+up*(from*s.unit+1.5), line+up*(from+piece)*s.unit
		s.rect(x, min(near, far), s.wide, max(math.Abs(far-near), 0.5), class)
	}
}

// roomFor says whether bars are wide enough for a number at their ends. Where
// they are not, only the first of the tallest has one, for the scale.
func (s *svg) roomFor(units float64) bool { return s.wide >= 8*float64(len(number(units)))-4 }

// denied is the class of denied arrivals: outlined, where there is room for a line.
func (s *svg) denied() string {
	if s.wide < 5 {
		return "no-thin"
	}
	return "no"
}

// point is a coordinate, to a tenth.
func point(v float64) string { return fmt.Sprintf("%g", math.Round(v*10)/10) }

func escape(text string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(text)) // a strings.Builder does not fail
	return b.String()
}
