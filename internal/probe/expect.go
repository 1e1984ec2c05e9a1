package probe

import (
	"fmt"
	"math"

	"github.com/comporta/comporta"
)

// A Contract is what an API's limit ought to be.
type Contract struct {
	Limit comporta.Limit
	// AnyAlgorithm: the algorithm is left open.
	AnyAlgorithm bool
}

// How exactly numbers can be told from outside: a unit, or this part of them.
const tolerance = 0.03

// check holds a finding against the contract. What is not known for sure is no
// breach, and no proof either: it fails as such, since a contract wants an answer.
func (c *Contract) check(f *Finding) []Check {
	if f == nil || !f.Limited {
		seen := "no limit was met"
		if f != nil && f.AtLeast > 0 {
			seen = fmt.Sprintf("no limit was met: %d passed within %v", f.AtLeast, f.Within)
		}
		return []Check{{Name: "expect-limit", Asks: "Is there the limit that is expected, " + c.Limit.String() + "?", Verdict: Bad, Seen: seen}}
	}
	number := func(name, asks string, want float64, e Estimate, slack float64) Check {
		check := Check{Name: name, Asks: asks, Verdict: Good, Seen: fmt.Sprintf("%.4g, as expected", want)}
		slack = max(slack, want*tolerance)
		switch {
		case want < e.Low-slack || want > e.High+slack:
			check.Verdict, check.Seen = Bad, fmt.Sprintf("%.4g is expected, and it is %.4g (from %.4g to %.4g)", want, e.Value, e.Low, e.High)
		case e.High-e.Low > max(4*slack, want/2):
			check.Verdict, check.Seen = Unknown, fmt.Sprintf("%.4g is expected, and it may be anything from %.4g to %.4g", want, e.Low, e.High)
		}
		return check
	}
	window := c.Limit.Window.Seconds()
	// A bucket tells its rate alone: 60/min is 1/s to whoever looks from outside.
	bucket := f.Limit.Algorithm.Bucket()
	want := Estimate{Value: f.Units.Value, Low: f.Units.Low, High: f.Units.High}
	if bucket && f.Window.Value > 0 {
		scale := window / f.Window.Value
		want = Estimate{want.Value * scale, want.Low * scale, want.High * scale}
	}
	checks := []Check{number("expect-limit", fmt.Sprintf("Is the limit %d?", c.Limit.Limit), float64(c.Limit.Limit), want, 1)}
	if !bucket {
		checks = append(checks, number("expect-window", fmt.Sprintf("Is the window %s?", comporta.FormatDuration(c.Limit.Window)), window, f.Window, 0.05))
	}
	burst := c.Limit.Burst
	if burst == 0 {
		burst = c.Limit.Limit
	}
	if bucket && c.Limit.Algorithm.Bucket() {
		checks = append(checks, number("expect-burst", fmt.Sprintf("Is the burst %d?", burst), float64(burst), f.Burst, 1))
	}
	if !c.AnyAlgorithm {
		checks = append(checks, c.algorithm(f))
	}
	return checks
}

func (c *Contract) algorithm(f *Finding) Check {
	check := Check{Name: "expect-algorithm", Asks: "Is it a " + c.Limit.Algorithm.String() + "?", Verdict: Unknown, Seen: "it is not known"}
	if len(f.Algorithms) == 0 {
		return check
	}
	first := f.Algorithms[0]
	check.Seen = fmt.Sprintf("%s (%.0f %% sure)", first.Algorithm, math.Floor(100*first.Certainty))
	switch {
	case first.Algorithm == c.Limit.Algorithm:
		check.Verdict = Good
	case first.Certainty > 0.5:
		check.Verdict = Bad
	}
	return check
}
