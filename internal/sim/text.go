package sim

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/comporta/comporta"
)

// WriteText writes the report for people. One run: each decision, the timeline,
// and what was admitted of each burst. Several: what each admitted, side by side.
func (r *Report) WriteText(w io.Writer, s Screen) error {
	var pages []*canvas
	if len(r.Runs) == 1 {
		run := r.Runs[0]
		pages = []*canvas{run.decisions(s), r.timeline(run, s), r.summary(run, s)}
	} else {
		pages = []*canvas{r.comparison(s), r.strips(s), r.notes(s)}
	}
	for i, page := range pages {
		if page.height() == 0 {
			continue
		}
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := page.write(w, s.Color); err != nil {
			return err
		}
	}
	return nil
}

// title is the limit in words.
func (r *Run) title() string {
	title := r.Limit.Algorithm.String() + " " + r.Limit.String()
	if r.Limit.MaxWait > 0 {
		title += ", max wait " + comporta.FormatDuration(r.Limit.MaxWait)
	}
	if r.Limit.Charge == comporta.Attempts {
		title += ", charging attempts"
	}
	return title
}

// decisions is a row for each decision; those of one instant that are alike in
// all share a row.
func (r *Run) decisions(s Screen) *canvas {
	rows := [][]string{{"time", "cost", "decision", "", "remaining", "reset", "retry", "delay"}}
	for i := 0; i < len(r.Answers); {
		a := &r.Answers[i]
		alike := 1
		for i+alike < len(r.Answers) && same(a, &r.Answers[i+alike]) {
			alike++
		}
		row := []string{"", strconv.FormatInt(a.Cost, 10), "allowed", "", unitsText(a.Remaining), timeText(a.ResetAfter), "", ""}
		if i == 0 || r.Answers[i-1].At != a.At {
			row[0] = timeText(a.At)
		}
		if !a.Allowed {
			row[2], row[6] = "denied", timeText(a.RetryAfter)
		}
		if alike > 1 {
			row[3] = "×" + strconv.Itoa(alike)
		}
		if a.Delay > 0 {
			row[7] = timeText(a.Delay)
		}
		rows = append(rows, row)
		i += alike
	}
	c := &canvas{width: s.unlimited()}
	c.text(0, 0, r.title(), bold)
	c.table(2, rows, func(row, column int) ink {
		switch {
		case row == 0:
			return faint
		case column == 2 && rows[row][2] == "denied":
			return bad
		case column == 2:
			return good
		}
		return plain
	}, 0, 2, 3)
	return c
}

// same says whether two answers print alike.
func same(a, b *Answer) bool {
	return a.At == b.At && a.Cost == b.Cost && answerOf(a.Decision) == answerOf(b.Decision)
}

// unlimited is the width of what is not cut to the screen: tables.
func (s Screen) unlimited() int { return max(s.Width, 1000) }

// table draws rows in columns two blanks apart, right-aligned but for those
// listed in left.
func (c *canvas) table(top int, rows [][]string, color func(row, column int) ink, left ...int) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	for n, row := range rows {
		at := 0
		for i, text := range row {
			start := at
			if !slices.Contains(left, i) {
				start += widths[i] - utf8.RuneCountInString(text)
			}
			c.text(top+n, start, text, color(n, i))
			if at += widths[i]; widths[i] > 0 {
				at += 2
			}
		}
	}
}

// summary is what was admitted in all and of each burst.
func (r *Report) summary(run *Run, s Screen) *canvas {
	c := &canvas{width: s.unlimited()}
	text := run.share()
	if len(r.Bursts) > 1 {
		parts := make([]string, len(r.Bursts))
		for i, b := range r.Bursts {
			parts[i] = fmt.Sprintf("%d of %d at %v", run.Admitted[i], b.Count, b)
		}
		text += ": " + strings.Join(parts, ", ")
	}
	for i, line := range wrap(text, s.Width) {
		c.text(i, 0, line, bold)
	}
	return c
}

// wrap breaks a text at blanks into lines that fit.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// comparison is what each run admitted of each burst, algorithms side by side.
func (r *Report) comparison(s Screen) *canvas {
	first, second := []string{"", ""}, []string{"time", "arrivals"}
	total := []string{"all", strconv.Itoa(len(r.Runs[0].Answers))}
	for _, run := range r.Runs {
		a, b, _ := strings.Cut(run.Limit.Algorithm.String(), "_")
		first, second = append(first, a), append(second, b)
		_, admitted := run.Total()
		total = append(total, strconv.Itoa(admitted))
	}
	rows := [][]string{first, second}
	for i, b := range r.Bursts {
		row := []string{b.String(), strconv.Itoa(b.Count)}
		for _, run := range r.Runs {
			row = append(row, strconv.Itoa(run.Admitted[i]))
		}
		rows = append(rows, row)
	}
	if len(r.Bursts) > 1 {
		rows = append(rows, total)
	}
	c := &canvas{width: s.unlimited()}
	c.text(0, 0, "admitted under "+r.widest().String(), bold)
	c.table(2, rows, func(row, _ int) ink {
		switch {
		case row < 2:
			return faint
		case row == len(r.Bursts)+2:
			return bold
		}
		return plain
	}, 0)
	return c
}

// widest is the limit of a run from which nothing was left out, if there is one.
func (r *Report) widest() comporta.Limit {
	for _, run := range r.Runs {
		if len(run.Notes) == 0 {
			return run.Limit
		}
	}
	return r.Runs[0].Limit
}

// notes says what was left out, each once, with the algorithms it was left out for.
func (r *Report) notes(s Screen) *canvas {
	c := &canvas{width: s.unlimited()}
	whose := map[string][]string{}
	var order []string
	for _, run := range r.Runs {
		for _, note := range run.Notes {
			if whose[note] == nil {
				order = append(order, note)
			}
			whose[note] = append(whose[note], run.Limit.Algorithm.String())
		}
	}
	row := 0
	for _, note := range order {
		for _, line := range wrap("note: "+strings.Join(whose[note], ", ")+": "+note+".", s.Width) {
			c.text(row, 0, line, signal)
			row++
		}
	}
	return c
}
