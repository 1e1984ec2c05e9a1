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

// A textReport is being written for people.
type textReport struct {
	strings.Builder
	screen Screen
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer, s Screen) error {
	b := &textReport{screen: s}
	fmt.Fprintf(b, "%s\n", b.paint("1", r.Target.shown()))
	for i, as := range r.Target.as() {
		fmt.Fprintf(b, "%s\n", b.paint("2", [...]string{"as ", "and, to compare, as "}[i]+as))
	}
	sentence, rest := r.Finding.lines()
	b.WriteString("\n")
	b.wrap("", "", b.paint("1", sentence))
	for _, line := range rest {
		b.wrap("  ", "", line)
	}
	if len(r.Finding.Evidence) > 0 {
		b.WriteString("\nWhy:\n")
		for _, line := range r.Finding.Evidence {
			b.wrap("  ", "- ", line)
		}
	}
	if timeline := r.timeline(max(min(s.Width, 100)-4, 20)); timeline != "" {
		b.WriteString("\n" + timeline)
	}
	b.WriteString("\n")
	b.wrap("", "", b.paint("1", r.summary()))
	b.WriteString("\n")
	for _, c := range r.Checks {
		if c.Verdict != Unknown {
			b.check(c)
		}
	}
	b.unknown(r.Checks)
	fmt.Fprintf(b, "\n%d of at most %d requests, %v of at most %s", r.Requests, r.Budget.Requests, r.Took.Round(100*time.Millisecond), comporta.FormatDuration(r.Budget.Time))
	if r.Ended != "" {
		b.WriteString(b.paint("33", "; ended early: "+r.Ended))
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// summary counts the verdicts.
func (r *Report) summary() string {
	counts := map[Verdict]int{}
	for _, c := range r.Checks {
		counts[c.Verdict]++
	}
	return fmt.Sprintf("Of %d questions %d are answered well, %d with a warning, %d badly, and %d not at all.", len(r.Checks), counts[Good], counts[Warn], counts[Bad], counts[Unknown])
}

func (b *textReport) paint(color, text string) string {
	if !b.screen.Color || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// check writes one that was answered.
func (b *textReport) check(c Check) {
	const indent = "      "
	m := marks[c.Verdict]
	fmt.Fprintf(b, "%s  %s\n", b.paint(m.color, fmt.Sprintf("%-4s", m.sign)), c.Asks)
	b.wrap(indent, "", c.Seen)
	if c.Verdict == Good {
		return
	}
	for _, line := range c.Details {
		if !strings.HasSuffix(line, ": not used") {
			b.wrap(indent, "- ", line)
		}
	}
	if c.Why != "" {
		b.wrap(indent, "", "This matters: "+c.Why+".")
	}
	if c.Todo != "" {
		b.wrap(indent, "→ ", c.Todo)
	}
}

// unknown writes those that could not be answered, together where they share the
// reason.
func (b *textReport) unknown(checks []Check) {
	const indent = "      "
	by := map[string][]Check{}
	for _, c := range checks {
		if c.Verdict == Unknown {
			by[c.Seen] = append(by[c.Seen], c)
		}
	}
	for _, c := range checks {
		same := by[c.Seen]
		if c.Verdict != Unknown || len(same) == 0 {
			continue
		}
		by[c.Seen] = nil
		asks := c.Asks
		if len(same) > 2 {
			asks = fmt.Sprintf("%d questions could not be answered: ", len(same))
			for i, o := range same {
				if i > 0 {
					asks += ", "
				}
				asks += o.Name
			}
			same = same[:1]
		}
		for _, o := range same {
			if len(same) > 1 {
				asks = o.Asks
			}
			b.wrap("", b.paint("2", "?     "), asks)
			b.wrap(indent, "", o.Seen)
			if o.Todo != "" {
				b.wrap(indent, "→ ", o.Todo)
			}
		}
	}
}

// wrap writes a text in lines no longer than the screen; first stands before the
// first, and as much space before the others.
func (b *textReport) wrap(indent, first, text string) {
	width := max(b.screen.Width, 40)
	space := indent + strings.Repeat(" ", shownWidth(first))
	line, empty := indent+first, true
	for word := range strings.FieldsSeq(text) {
		if !empty && shownWidth(line)+1+shownWidth(word) > width {
			b.WriteString(line + "\n")
			line, empty = space, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	b.WriteString(line + "\n")
}

// shownWidth is how many columns a text takes: colours take none.
func shownWidth(text string) (n int) {
	for text != "" {
		before, rest, colored := strings.Cut(text, "\x1b[")
		n += utf8.RuneCountInString(before)
		if !colored {
			break
		}
		_, text, _ = strings.Cut(rest, "m")
	}
	return n
}

// Sentence is what the limit seems to be, in one line.
func (f *Finding) Sentence() string {
	switch {
	case !f.Limited && f.AtLeast == 0:
		return "Nothing is known of a limit."
	case !f.Limited && f.AtLeast == 1:
		return "No limit was met by one request."
	case !f.Limited:
		return fmt.Sprintf("No limit was met: %d requests passed within %v.", f.AtLeast, f.Within.Round(time.Millisecond))
	case len(f.Algorithms) == 0:
		return "There is a limit, and it is not known which."
	}
	first := f.Algorithms[0]
	return fmt.Sprintf("It seems to be %s, a %s (%.0f %% sure).", f.Limit, first.Algorithm, 100*first.Certainty)
}

// lines are the finding, for people: a sentence, and what else there is.
func (f *Finding) lines() (sentence string, rest []string) {
	if !f.Limited || len(f.Algorithms) == 0 {
		return f.Sentence(), nil
	}
	rest = append(rest, f.numbers())
	var others []string
	for _, c := range f.Algorithms[1:] {
		if c.Certainty >= 0.005 {
			others = append(others, fmt.Sprintf("%s %.0f %%", c.Algorithm, 100*c.Certainty))
		}
	}
	if len(others) > 0 {
		rest = append(rest, "It might be: "+strings.Join(others, ", ")+".")
	}
	return f.Sentence(), rest
}

// numbers are the estimates, with their ranges.
func (f *Finding) numbers() string {
	text := "Units a window: " + f.Units.String() + "; window: " + f.Window.String() + " s"
	if f.Limit.Algorithm.Bucket() {
		text += "; burst: " + f.Burst.String()
	}
	return text + "."
}

// String is the value, with its range where there is one.
func (e Estimate) String() string {
	if e.High-e.Low <= 0.001*e.Value {
		return fmt.Sprintf("%.4g", e.Value)
	}
	return fmt.Sprintf("%.4g (%.4g to %.4g)", e.Value, e.Low, e.High)
}

// Plan says what a probe will do at most, before it does it.
func Plan(o Options) string {
	return fmt.Sprintf("%s is sent at most %d requests, within %s.", o.Target.shown(), o.Budget.Requests, comporta.FormatDuration(o.Budget.Time))
}
