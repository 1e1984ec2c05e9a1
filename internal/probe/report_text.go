package probe

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/comporta/comporta"
)

// A Screen is what a report is written to.
type Screen struct {
	Width int
	Color bool
}

// marks are what stands before a check, and its colour.
var marks = map[Verdict]struct{ sign, color string }{
	Good: {"ok", "32"}, Bad: {"BAD", "31"}, Warn: {"warn", "33"}, Unknown: {"?", "2"},
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer, s Screen) error {
	var b strings.Builder
	paint := func(color, text string) string {
		if !s.Color || color == "" {
			return text
		}
		return "\x1b[" + color + "m" + text + "\x1b[0m"
	}
	fmt.Fprintf(&b, "%s\n\n", paint("1", r.Target.shown()))
	for _, line := range r.Finding.lines() {
		writeWrapped(&b, line, "  ", s.Width)
	}
	if timeline := r.timeline(max(min(s.Width, 100)-4, 20)); timeline != "" {
		b.WriteString("\n" + timeline)
	}
	b.WriteString("\n")
	for _, c := range r.Checks {
		m := marks[c.Verdict]
		fmt.Fprintf(&b, "%s  %s\n", paint(m.color, fmt.Sprintf("%-4s", m.sign)), c.Asks)
		writeWrapped(&b, c.Seen, "      ", s.Width)
		if c.Todo != "" && c.Verdict != Unknown {
			writeWrapped(&b, "→ "+c.Todo, "      ", s.Width)
		}
	}
	fmt.Fprintf(&b, "\n%d of at most %d requests, %v of at most %v", r.Requests, r.Budget.Requests, r.Took.Round(100*time.Millisecond), r.Budget.Time)
	if r.Ended != "" {
		b.WriteString(paint("33", "; ended early: "+r.Ended))
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeWrapped(b *strings.Builder, text, indent string, width int) {
	line := indent
	for word := range strings.FieldsSeq(text) {
		if line != indent && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > max(width, 40) {
			b.WriteString(line + "\n")
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}

// Sentence is what the limit seems to be, in one line.
func (f *Finding) Sentence() string {
	if !f.Limited {
		return fmt.Sprintf("No limit was met: %d requests passed within %v.", f.AtLeast, f.Within.Round(time.Millisecond))
	}
	if len(f.Algorithms) == 0 {
		return "There is a limit, and it is not known which."
	}
	first := f.Algorithms[0]
	return fmt.Sprintf("It seems to be %s, a %s (%.0f %% sure).", f.Limit, first.Algorithm, 100*first.Certainty)
}

// lines are the finding, for people.
func (f *Finding) lines() []string {
	lines := []string{f.Sentence()}
	if !f.Limited {
		return append(lines, f.Evidence...)
	}
	lines = append(lines, "Units a window: "+f.Units.String()+"; window: "+f.Window.String()+" s"+f.burst()+".")
	if len(f.Algorithms) > 1 {
		var others []string
		for _, c := range f.Algorithms[1:] {
			if c.Certainty >= 0.005 {
				others = append(others, fmt.Sprintf("%s %.0f %%", c.Algorithm, 100*c.Certainty))
			}
		}
		if len(others) > 0 {
			lines = append(lines, "It might be: "+strings.Join(others, ", ")+".")
		}
	}
	return append(lines, f.Evidence...)
}

func (f *Finding) burst() string {
	if !f.Limit.Algorithm.Bucket() {
		return ""
	}
	return "; burst: " + f.Burst.String()
}

// String is the value, with its range where there is one.
func (e Estimate) String() string {
	if e.High-e.Low <= 0.001*e.Value {
		return fmt.Sprintf("%.4g", e.Value)
	}
	return fmt.Sprintf("%.4g (%.4g to %.4g)", e.Value, e.Low, e.High)
}

// timeline draws what passed and what was refused, over time.
func (r *Report) timeline(width int) string {
	passed, refused, took := r.columns(width)
	if took == 0 {
		return ""
	}
	most := 1
	for i := range passed {
		most = max(most, passed[i], refused[i])
	}
	const steps = " ▁▂▃▄▅▆▇█"
	row := func(counts []int) string {
		var b strings.Builder
		for _, n := range counts {
			step := 0
			if n > 0 {
				step = max(1, n*8/most)
			}
			b.WriteRune([]rune(steps)[step])
		}
		return strings.TrimRight(b.String(), " ")
	}
	return fmt.Sprintf("  passed, and below it refused, over %v\n  %s\n  %s\n  %s\n", took.Round(100*time.Millisecond), row(passed), strings.Repeat("─", width), row(refused))
}

// columns counts the shots in so many pieces of the time.
func (r *Report) columns(n int) (passed, refused []int, took time.Duration) {
	passed, refused = make([]int, n), make([]int, n)
	if len(r.Shots) == 0 {
		return passed, refused, 0
	}
	began := r.Shots[0].Sent
	for _, s := range r.Shots {
		took = max(took, s.Received.Sub(began))
	}
	for _, s := range r.Shots {
		at := min(int(float64(s.Received.Sub(began))/float64(max(took, 1))*float64(n)), n-1)
		switch {
		case s.Denied():
			refused[at]++
		case s.Admitted():
			passed[at]++
		}
	}
	return passed, refused, took
}

// Plan says what a probe will do at most, before it does it.
func Plan(o Options) string {
	list := "what the limit is"
	for _, c := range checks {
		if !c.slow || !o.Quick {
			list += ", " + c.name
		}
	}
	return fmt.Sprintf("%s is sent at most %d requests, within %s, to find out: %s.", o.Target.shown(), o.Budget.Requests, comporta.FormatDuration(o.Budget.Time), list)
}
