package probe

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"time"
)

//go:embed report.html.tmpl
var page string

// pageTemplate is the report as one file, without scripts and with its pictures
// in it.
var pageTemplate = template.Must(template.New("report").Parse(page))

type (
	pageData struct {
		URL, When, Used, Ended, Sentence, Numbers, Column, Window, Summary string
		As                                                                 []string
		Which                                                              []pageWhich
		Evidence                                                           []string
		Requests, Windows                                                  template.HTML
		Checks                                                             []Check
	}
	pageWhich struct {
		Name, Sure string
		Width      int
	}
)

// WriteHTML writes the report as a page.
func (r *Report) WriteHTML(w io.Writer) error {
	f := r.Finding
	requests, column := r.drawRequests()
	d := pageData{
		URL: r.Target.shown(), As: r.Target.as(), When: r.Began.Format("2 January 2006, 15:04 MST"), Ended: r.Ended,
		Sentence: f.Sentence(), Evidence: f.Evidence, Summary: r.summary(),
		Used:     fmt.Sprintf("%d of at most %d requests in %v", r.Requests, r.Budget.Requests, r.Took.Round(100*time.Millisecond)),
		Requests: template.HTML(requests), Column: seconds(column.Seconds()), // our own numbers
	}
	if f.Limited && len(f.Algorithms) > 0 {
		d.Numbers = f.numbers()
		d.Windows, d.Window = template.HTML(r.drawWindows()), seconds(f.Window.Value)
		for _, c := range f.Algorithms {
			d.Which = append(d.Which, pageWhich{c.Algorithm.String(), fmt.Sprintf("%.1f %%", 100*c.Certainty), int(math.Round(100 * c.Certainty))})
		}
	}
	for _, c := range r.Checks {
		if c.Verdict == Good || c.Verdict == Unknown {
			c.Details = nil
		}
		d.Checks = append(d.Checks, c)
	}
	return pageTemplate.Execute(w, d)
}
