package explain

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/comporta/comporta"
)

// WriteText writes the explanation for people.
func (x *Explanation) WriteText(w io.Writer) error {
	out := new(strings.Builder)
	fmt.Fprintf(out, "%s %s from %s\n%s\n", x.Request.Method, x.Request.Path, x.Request.Client, x.Answer.sentence())
	if len(x.Unproved) > 0 {
		fmt.Fprintf(out, "it shows a credential that proves nothing (unknown, expired, forged or meant for others): %s\n", strings.Join(x.Unproved, ", "))
	}
	out.WriteString("\n")
	for _, l := range x.Limits {
		if l.Part != nil {
			l.Part.write(out, l.Name)
		}
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, l := range x.Limits {
		if l.Part == nil {
			fmt.Fprintf(t, "%s\tdoes not apply: %s\n", l.Name, l.Why)
		}
	}
	_ = t.Flush() // a strings.Builder takes all
	_, err := io.WriteString(w, out.String())
	return err
}

func (a *Answer) sentence() string {
	switch {
	case a.Allowed && a.Delay > 0:
		return "passes, after waiting " + words(a.Delay)
	case a.Allowed && a.Why != "":
		return "passes: " + a.Why
	case a.Allowed:
		return "passes"
	case a.Status == 0 || !strings.HasPrefix(a.Why, "over "):
		return fmt.Sprintf("is refused with %d: %s", a.Status, a.Why)
	case a.RetryAfter == nil:
		return fmt.Sprintf("is refused with %d: %s, and it costs more than a full budget holds: it can never pass", a.Status, a.Why)
	}
	return fmt.Sprintf("is refused with %d: %s; the same request passes in %s", a.Status, a.Why, words(*a.RetryAfter))
}

// write is one limit that applies: what it says first, then the numbers.
func (p *Part) write(out *strings.Builder, name string) {
	verdict := "lets it pass"
	switch {
	case p.Blocked:
		verdict = "denies it: it denied this client before"
	case !p.Passes:
		verdict = "denies it"
	}
	if p.Mode != "enforce" {
		verdict += " (" + p.Mode + ": refuses nothing)"
	}
	fmt.Fprintf(out, "%s %s\n", name, verdict)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  counted as\t%s\n", p.Identity)
	fmt.Fprintf(t, "  numbers\t%s, %s\n", p.numbers(), p.whose())
	if !p.Unlimited {
		fmt.Fprintf(t, "  cost\t%d\n", p.Cost)
		fmt.Fprintf(t, "  left\t%s\n", p.left())
	}
	_ = t.Flush()
	out.WriteString("\n")
}

func (p *Part) numbers() string {
	if p.Unlimited {
		return p.Numbers
	}
	return p.Numbers + " as " + p.Algorithm
}

func (p *Part) whose() string {
	if p.From == "limit" {
		return "the limit's own"
	}
	return "by " + p.From
}

func (p *Part) left() string {
	left := fmt.Sprintf("%d of %d", p.Remaining, p.Full)
	switch {
	case p.FullAfter == 0:
		left += ": all"
	default:
		left += fmt.Sprintf("; more in %s, all in %s", words(p.MoreAfter), words(p.FullAfter))
	}
	if p.RetryAfter != nil {
		left += fmt.Sprintf("; enough for this request in %s", words(*p.RetryAfter))
	}
	return left
}

// words writes seconds: whole ones where they are many.
func words(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
	if d > 10*time.Second {
		d = (d + time.Second - 1).Truncate(time.Second)
	}
	return comporta.FormatDuration(d)
}
