package probe

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// timeline draws what passed and what was refused, over time: bars that grow up and
// bars that hang down, on one scale of square roots, so that one request is seen
// beside hundreds.
func (r *Report) timeline(width int) string {
	passed, refused, took := r.columns(width)
	if took == 0 {
		return ""
	}
	most, all := 1, [2]int{}
	for i := range passed {
		most = max(most, passed[i], refused[i])
		all[0] += passed[i]
		all[1] += refused[i]
	}
	if all == [2]int{} {
		return ""
	}
	row := func(counts []int, steps string) string {
		signs := []rune(steps)
		var b strings.Builder
		for _, n := range counts {
			step := 0
			if n > 0 {
				step = max(1, int(math.Round(math.Sqrt(float64(n)/float64(most))*float64(len(signs)-1))))
			}
			b.WriteRune(signs[step])
		}
		return strings.TrimRight(b.String(), " ")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  %d passed\n  %s\n", all[0], row(passed, " ▁▂▃▄▅▆▇█"))
	fmt.Fprintf(&b, "  %s\n", axis(width))
	fmt.Fprintf(&b, "  %s\n  %d refused\n  %s\n", row(refused, " ·░▒▓█"), all[1], marksOf(width, took))
	return b.String()
}

const pieces = 4 // of the axis

// axis is a line with a tick at each quarter.
func axis(width int) string {
	line := []rune(strings.Repeat("─", width))
	for i := range pieces + 1 {
		line[min(i*width/pieces, width-1)] = '┼'
	}
	return string(line)
}

// marksOf writes the time under each tick.
func marksOf(width int, took time.Duration) string {
	line := []rune(strings.Repeat(" ", width))
	for i := range pieces + 1 {
		text := []rune(fmt.Sprintf("%.3g s", took.Seconds()*float64(i)/pieces))
		if took < 100*time.Millisecond {
			text = []rune(fmt.Sprintf("%.3g ms", 1000*took.Seconds()*float64(i)/pieces))
		}
		at := min(max(0, i*width/pieces-len(text)/2), width-len(text))
		copy(line[max(at, 0):], text)
	}
	return strings.TrimRight(string(line), " ")
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
