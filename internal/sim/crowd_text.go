package sim

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta"
)

// WriteText writes the report for people: a row for each kind of callers, what the
// columns mean, and what reached the server when.
func (r *CrowdReport) WriteText(w io.Writer, s Screen) error {
	for i, page := range []*canvas{r.table(s), r.notes(s), r.strips(s)} {
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

// Above bearable, refusals are coloured as bad, and up to fine as good.
const (
	fine     = 0.05
	bearable = 1
)

func (r *CrowdReport) table(s Screen) *canvas {
	rows := [][]string{
		{"", "", "", "", "refused", "total", "median", "p99", ""},
		{"", "clients", "success", "sent", "/success", "time", "wait", "wait", "spike"},
	}
	for _, p := range r.Parties {
		rows = append(rows, []string{
			p.Name, strconv.Itoa(p.Clients), strconv.Itoa(p.Successes), strconv.Itoa(p.Sent), p.perSuccess(),
			p.tookText(), p.waited(p.Median), p.waited(p.P99), strconv.Itoa(p.Spike),
		})
	}
	c := &canvas{width: s.unlimited()}
	c.text(0, 0, r.title(), bold)
	c.table(2, rows, func(row, column int) ink {
		switch {
		case row < 2:
			return faint
		case column == 4:
			return r.Parties[row-2].ink()
		}
		return plain
	}, 0)
	return c
}

func (p *Party) ink() ink {
	switch refused := p.RefusedPerSuccess(); {
	case p.Stopped || refused > bearable:
		return bad
	case refused <= fine:
		return good
	}
	return plain
}

// title is what they all want.
func (r *CrowdReport) title() string {
	count := func(n int, what string) string {
		if n == 1 {
			return "1 " + what
		}
		return thousands(n) + " " + what + "s"
	}
	return fmt.Sprintf("%s, %s each, against %s %s", count(r.Crowd.Clients, "client"), count(r.Crowd.Requests, "request"), r.Crowd.Limit.Algorithm, r.Crowd.Limit)
}

func (p *Party) perSuccess() string {
	if p.RefusedPerSuccess() >= 1000 {
		return thousands(int(p.RefusedPerSuccess()))
	}
	return strconv.FormatFloat(p.RefusedPerSuccess(), 'f', 2, 64)
}

func (p *Party) tookText() string {
	if p.Stopped {
		return "stopped"
	}
	return waitText(p.Took)
}

// waited is a wait, where anything was answered.
func (p *Party) waited(d time.Duration) string {
	if p.Successes == 0 {
		return "–"
	}
	return waitText(d)
}

// waitText is a time to a hundredth of a second, or whole where it is long.
func waitText(d time.Duration) string {
	if d >= 10*time.Minute {
		return comporta.FormatDuration(d.Round(time.Second))
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + "s"
}

// notes say who is who and what the columns are.
func (r *CrowdReport) notes(s Screen) *canvas {
	c := &canvas{width: s.unlimited()}
	row, left := 0, 0
	for _, p := range r.Parties {
		left = max(left, len(p.Name)+2)
	}
	for _, p := range r.Parties {
		c.text(row, 0, p.Name, plain)
		c.text(row, left, p.Says, faint)
		row++
	}
	row++
	say := func(text string, in ink) {
		for _, line := range wrap(text, s.Width) {
			c.text(row, 0, line, in)
			row++
		}
	}
	say(r.spikeText(), faint)
	say("wait: from wanting a request to its answer; total time: until the last", faint)
	for _, p := range r.Parties {
		if p.Stopped {
			say(p.Name+": "+p.stoppedText(), signal)
		}
	}
	return c
}

func (r *CrowdReport) spikeText() string {
	text := "spike: the most requests that reach the server within any 100 ms"
	if r.Opens > 0 {
		text += fmt.Sprintf(", after the limit opens: from %s on, when the first that was refused may come again", waitText(r.Opens))
	}
	return text
}

func (p *Party) stoppedText() string {
	return fmt.Sprintf("stopped after %s, with %s of %s answered by %s attempts",
		waitText(p.lasted), thousands(p.Successes), thousands(p.wanted), thousands(p.Sent))
}

// stripHigh are the rows of the tallest strip.
const stripHigh = 4

// strips draw what reached the server, for each party: a column for each step of
// time, on a scale of square roots that all share. A low strip takes fewer rows.
func (r *CrowdReport) strips(s Screen) *canvas {
	c := s.newCanvas(0)
	step, all := r.bars(c.width - 2)
	most, long := 0, 0
	for _, bars := range all {
		long = max(long, len(bars))
		for _, b := range bars {
			most = max(most, b.all())
		}
	}
	p := &plot{canvas: c, axis: axis{0, time.Duration(long) * step}, left: 1, places: long + 1, wide: 1}
	c.text(0, 0, fmt.Sprintf("what reaches the server in each %s, on a scale of square roots", timeText(step)), bold)
	c.text(1, 0, "█", good)
	c.text(1, 2, "admitted", plain)
	c.text(1, 12, "░", bad)
	c.text(1, 14, "refused", plain)
	height := func(n int) int { return blocks(math.Sqrt(float64(n)/float64(most))*stripHigh, 1) }
	row := 3
	for i, party := range r.Parties {
		c.text(row, 0, party.Name, plain)
		foot := row + 1
		if peak := tallestBar(all[i]); peak >= 0 {
			c.text(row, len(party.Name)+2, "at most "+thousands(all[i][peak].all()), faint)
			foot = row + height(all[i][peak].all())
		}
		for place, b := range all[i] {
			p.stack(foot, place, height(b.admitted), height(b.all()), b.refused > 0)
		}
		row = foot + 1
	}
	p.time(row)
	return c
}

// stack fills a column from its foot upward: what was admitted, and above it what
// was refused, of which something is seen.
func (p *plot) stack(foot, place, admitted, all int, refused bool) {
	if refused && admitted == all && all > 1 {
		admitted--
	}
	for n := range all {
		if n < admitted {
			p.column(foot-n, place, '█', good)
		} else {
			p.column(foot-n, place, '░', bad)
		}
	}
}

// tallestBar is the first of the tallest; −1 where there is none.
func tallestBar(bars []crowdBar) int {
	tallest := -1
	for i, b := range bars {
		if tallest < 0 || b.all() > bars[tallest].all() {
			tallest = i
		}
	}
	return tallest
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	var b strings.Builder
	for i, digit := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}
