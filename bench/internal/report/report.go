// Package report prints the table of a benchmark: what the best peer needs, what
// we need, and whether that reaches the target.
package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Target is what is to be reached. A zero field asks nothing.
type Target struct {
	// Ratio is how many times better than the peer at least; AimRatio is what
	// would be better still.
	Ratio, AimRatio float64
	// Most is what our own value may be at most; AimMost likewise.
	Most, AimMost float64
}

// String is the target in words.
func (t Target) String() string {
	var words []string
	if t.Ratio > 0 {
		words = append(words, times(t.Ratio))
	}
	if t.AimRatio > 0 {
		words = append(words, "aim "+times(t.AimRatio))
	}
	if t.Most > 0 {
		words = append(words, "at most "+number(t.Most))
	}
	if t.AimMost > 0 {
		words = append(words, "aim "+number(t.AimMost))
	}
	return strings.Join(words, ", ")
}

// reached is "no", "yes", or "aim" where the aim is reached too.
func (t Target) reached(ratio, ours float64) string {
	switch {
	case t == (Target{}):
		return ""
	case ratio < t.Ratio, t.Most > 0 && ours > t.Most:
		return "**no**"
	case t.AimRatio > 0 && ratio >= t.AimRatio, t.AimMost > 0 && ours <= t.AimMost:
		return "yes, the aim too"
	}
	return "yes"
}

// A Value is one measurement.
type Value struct {
	Name string
	// Of is the value; CPU the processor time beside it, in the same unit, if it was taken.
	Of, CPU float64
}

func (v Value) String() string {
	if v.CPU > 0 {
		return fmt.Sprintf("%s (%s)", number(v.Of), number(v.CPU))
	}
	return number(v.Of)
}

// A Row compares a peer with us. Less is better unless the row says otherwise.
type Row struct {
	Scenario string
	Unit     string
	// More is better: the values are rates.
	More bool
	// Peer is who we are compared with; its zero value is none to compare with.
	Peer, Ours Value
	Target     Target
}

// Ratio is how many times better we are than the peer; 0 without a peer.
func (r Row) Ratio() float64 {
	less, more := r.Ours.Of, r.Peer.Of
	if r.More {
		less, more = more, less
	}
	if r.Peer.Name == "" || less == 0 {
		return 0
	}
	return more / less
}

// Best is the least of the values.
func Best(values []Value) Value {
	if len(values) == 0 {
		return Value{}
	}
	return slices.MinFunc(values, byValue)
}

// Highest is the best of rates.
func Highest(values []Value) Value {
	if len(values) == 0 {
		return Value{}
	}
	return slices.MaxFunc(values, byValue)
}

func byValue(a, b Value) int { return cmp.Compare(a.Of, b.Of) }

// Table is the rows as a table in Markdown, aligned to be read as it is.
func Table(rows []Row) string {
	cells := [][]string{{"scenario", "unit", "peer", "peer (CPU)", "ours (CPU)", "ratio", "target", "reached"}}
	for _, r := range rows {
		name, value, ratio := "–", "–", "–"
		if r.Peer.Name != "" {
			name, value, ratio = r.Peer.Name, r.Peer.String(), times(r.Ratio())
		}
		cells = append(cells, []string{r.Scenario, r.Unit, name, value, r.Ours.String(), ratio, r.Target.String(), r.Target.reached(r.Ratio(), r.Ours.Of)})
	}
	return Markdown(cells)
}

// Markdown sets cells as a table, the first row as its head.
func Markdown(cells [][]string) string {
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	line := func(row []string, fill string) {
		for i, c := range row {
			b.WriteString("| " + c + strings.Repeat(fill, widths[i]-utf8.RuneCountInString(c)) + " ")
		}
		b.WriteString("|\n")
	}
	line(cells[0], " ")
	line(make([]string, len(widths)), "-")
	for _, row := range cells[1:] {
		line(row, " ")
	}
	return b.String()
}

func times(ratio float64) string { return strconv.FormatFloat(ratio, 'f', 1, 64) + "×" }

// number is a value to three digits or so.
func number(v float64) string {
	switch {
	case v == math.Trunc(v) || math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
