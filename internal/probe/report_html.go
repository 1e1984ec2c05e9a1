package probe

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"
)

//go:embed report.html.tmpl
var page string

// pageTemplate is the report as one file, without scripts and with its pictures
// in it.
var pageTemplate = template.Must(template.New("report").Parse(page))

type (
	pageData struct {
		URL, When, Used, Ended, Sentence, Numbers, Column string
		Which                                             []pageWhich
		Evidence                                          []string
		Picture                                           template.HTML
		Checks                                            []Check
	}
	pageWhich struct {
		Name, Sure string
		Width      int
	}
)

// WriteHTML writes the report as a page.
func (r *Report) WriteHTML(w io.Writer) error {
	f := r.Finding
	picture, column := r.picture()
	d := pageData{
		URL: r.Target.shown(), When: r.Began.Format("2 January 2006, 15:04 MST"), Ended: r.Ended, Sentence: f.Sentence(), Evidence: f.Evidence,
		Used:    fmt.Sprintf("%d of at most %d requests in %v", r.Requests, r.Budget.Requests, r.Took.Round(100*time.Millisecond)),
		Picture: template.HTML(picture), Column: column.Round(time.Millisecond).String(), // our own numbers
	}
	if f.Limited {
		d.Numbers = f.numbers()
		for _, c := range f.Algorithms {
			d.Which = append(d.Which, pageWhich{c.Algorithm.String(), fmt.Sprintf("%.1f %%", 100*c.Certainty), int(math.Round(100 * c.Certainty))})
		}
	}
	for _, c := range r.Checks {
		if c.Verdict == Unknown {
			c.Todo = ""
		}
		d.Checks = append(d.Checks, c)
	}
	return pageTemplate.Execute(w, d)
}

// picture draws the shots over time: what passed above the line, what was refused
// below it, on a scale of square roots.
func (r *Report) picture() (svg string, column time.Duration) {
	const columns, width, high = 200, 840.0, 70.0
	passed, refused, took := r.columns(columns)
	most := 1
	for i := range passed {
		most = max(most, passed[i], refused[i])
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="requests over time">`, width+40, 2*high+44)
	line := high + 12
	for i := range 6 {
		x := 30 + width*float64(i)/5
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f 10V%.1f"/><text x="%.1f" y="%.1f" text-anchor="middle">%.3g s</text>`, x, line+high+4, min(x, width+15), line+high+20, took.Seconds()*float64(i)/5)
	}
	bar := func(i, n int, up bool, class string) {
		if n == 0 {
			return
		}
		h := max(math.Sqrt(float64(n)/float64(most))*high, 1.5)
		y := line + 0.5
		if up {
			y = line - h - 0.5
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%d</title></rect>`, class, 30+width*float64(i)/columns, y, width/columns*0.85, h, n)
	}
	for i := range passed {
		bar(i, passed[i], true, "in")
		bar(i, refused[i], false, "out")
	}
	fmt.Fprintf(&b, `<path class="axis" d="M30 %.1fH%.1f"/><text x="0" y="%.1f">%d</text></svg>`, line, width+30, 20.0, most)
	return b.String(), took / columns
}
