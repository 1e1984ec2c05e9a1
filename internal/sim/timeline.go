package sim

import (
	"fmt"
	"math"
	"strconv"
)

const (
	gutter    = 10 // columns left of a timeline, for its words
	leastPlot = 10 // columns that a timeline is never narrower than
	tallRows  = 10 // blocks of the tallest bar
)

// newCanvas is as wide as the screen, or a little wider than a very narrow one.
func (s Screen) newCanvas(left int) *canvas { return &canvas{width: max(s.Width, left+leastPlot)} }

// plot is a canvas's part right of the gutter, with one blank column at each side.
type plot struct {
	*canvas
	axis   axis
	left   int // first column
	places int
	wide   int // columns of a bar: 1 or 3
}

func newPlot(c *canvas, a axis, left int) *plot {
	return &plot{canvas: c, axis: a, left: left + 1, places: c.width - left - 2, wide: 1}
}

// column fills one row of the bar at a place.
func (p *plot) column(row, place int, char rune, in ink) {
	for i := range p.wide {
		p.set(row, p.left+place+i-p.wide/2, char, in)
	}
}

// time draws the axis on one row and its times on the next.
func (p *plot) time(row int) {
	for i := -1; i <= p.places; i++ {
		p.set(row, p.left+i, '─', faint)
	}
	for _, t := range p.axis.ticks(max(p.places/9, 1)) {
		at := p.left + p.axis.place(t, p.places)
		p.set(row, at, '┬', faint)
		p.label(row+1, at, p.left-1, timeText(t), faint)
	}
}

// timeline draws one run: arrivals above the axis, what was denied of them
// lighter, and admitted below it, at the time when they go on.
func (r *Report) timeline(run *Run, s Screen) *canvas {
	c := s.newCanvas(gutter)
	p := newPlot(c, r.axis(), gutter)
	bars := p.axis.bars(run, p.places)
	if gap(bars) >= 4 {
		p.wide = 3
	}
	most, dense := tallest(bars), gap(bars) == 1
	if most == 0 {
		return c // nothing but looks
	}
	scale := easyScale(most)
	rows := blocks(most, scale)

	untold := true // where bars stand side by side, only the first of the tallest has its number
	c.text(1, 0, "arrivals", plain)
	for place, b := range bars {
		all := blocks(b.arrived, scale)
		if all == 0 {
			continue
		}
		solid := min(blocks(b.admitted, scale), all)
		if solid == all && all > 1 && b.admitted < b.arrived {
			solid--
		}
		for i := range all {
			if i < solid {
				p.column(rows-i, place, '█', good)
			} else {
				p.column(rows-i, place, '░', bad)
			}
		}
		if !dense || all == rows && untold {
			p.label(rows-all, p.left+place, gutter, number(b.arrived), plain)
			untold = false
		}
	}
	p.time(rows + 1)
	below := rows + 3
	c.text(below, 0, "admitted", plain)
	for place, b := range bars {
		all := blocks(b.left, scale)
		for i := range all {
			p.column(below+i, place, '█', good)
		}
		if all > 0 && !dense {
			p.label(below+all, p.left+place, gutter, number(b.left), plain)
		}
	}
	c.legend(scale)
	return c
}

// legend says what the blocks stand for, on rows of its own.
func (c *canvas) legend(scale float64) {
	row := c.height() + 1
	c.set(row, 0, '█', good)
	c.text(row, 2, "admitted", plain)
	c.set(row, 12, '░', bad)
	c.text(row, 14, "denied", plain)
	if scale > 1 {
		c.text(row, 22, "a block stands for "+number(scale), faint)
	}
}

// easyScale is how many units a block stands for: 1, 2, 5, 10, 20 and so on.
func easyScale(most float64) float64 {
	for ten := 1.0; ; ten *= 10 {
		for _, scale := range []float64{ten, 2 * ten, 5 * ten} {
			if most <= scale*tallRows {
				return scale
			}
		}
	}
}

// blocks is how many blocks stand for so many units: at least one for any.
func blocks(units, scale float64) int {
	if units <= 0 {
		return 0
	}
	return max(int(math.Round(units/scale)), 1)
}

// number is a number of units that fits a narrow label: 12, 45k, 3.1M.
func number(units float64) string {
	suffix := ""
	for _, s := range []string{"k", "M", "G", "T", "P", "E"} {
		if units < 10_000 {
			break
		}
		units, suffix = units/1000, s
	}
	return strconv.FormatFloat(math.Round(units*10)/10, 'f', -1, 64) + suffix
}

// eighths are columns of growing height.
var eighths = []rune(" ▁▂▃▄▅▆▇█")

const (
	stripRows   = 2
	stripGutter = 16
)

// strips draws the arrivals and, below them, what each run admitted, on one axis
// and one scale.
func (r *Report) strips(s Screen) *canvas {
	c := s.newCanvas(stripGutter)
	p := newPlot(c, r.axis(), stripGutter)
	all := make([][]bar, len(r.Runs))
	most, closest := 0.0, p.places
	for i, run := range r.Runs {
		all[i] = p.axis.bars(run, p.places)
		most, closest = max(most, tallest(all[i])), min(closest, gap(all[i]))
	}
	if most == 0 {
		return c
	}
	if closest >= 4 {
		p.wide = 3
	}
	p.strip(0, "arrivals", all[0], most, plain, func(b bar) float64 { return b.arrived })
	p.time(stripRows)
	row := stripRows + 2
	for i, run := range r.Runs {
		p.strip(row, run.Limit.Algorithm.String(), all[i], most, good, func(b bar) float64 { return b.left })
		row += stripRows + 1
	}
	return c
}

// strip draws one row of small bars from a row downward.
func (p *plot) strip(row int, name string, bars []bar, most float64, in ink, height func(bar) float64) {
	foot := row + stripRows - 1
	p.text(foot, 0, name, plain)
	for place, b := range bars {
		units := height(b)
		if units <= 0 {
			continue
		}
		levels := max(int(math.Round(units/most*stripRows*8)), 1)
		for i := 0; levels > 0; i++ {
			p.column(foot-i, place, eighths[min(levels, 8)], in)
			levels -= 8
		}
	}
	for i := range p.places {
		if at := p.left + i; at >= len(p.rows[foot]) || p.rows[foot][at].char == ' ' {
			p.set(foot, at, '·', faint)
		}
	}
}

// share is "12 of 20 admitted".
func (r *Run) share() string {
	arrived, admitted := r.Total()
	return fmt.Sprintf("%d of %d admitted", admitted, arrived)
}
