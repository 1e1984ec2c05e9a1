package publish

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// Options say what stands around the limits.
type Options struct {
	// Title heads the page; "Rate limits" unless said.
	Title string
	// Advice is the operator's own, in Markdown: webhooks instead of polling, bulk
	// endpoints, larger pages.
	Advice string
	// SelfService is the path at which callers see their own limits; "" for none.
	SelfService string
}

func (o *Options) title() string { return cmp.Or(o.Title, "Rate limits") }

// Markdown is the page as Markdown (CommonMark with tables).
func Markdown(p *policy.Policy, o Options) string {
	w := &writer{policy: p}
	w.line("# " + escape(o.title()))
	w.line("")
	limits := published(p)
	if len(limits) == 0 {
		w.line("Requests to this API are not limited.")
	} else {
		w.line("All limits that match a request apply together: it passes if each of them has room, and if one has not, it is refused and counts against none.")
		w.endpoints(limits)
		w.limits(limits)
	}
	w.headers()
	w.refusals()
	if o.SelfService != "" {
		w.line("## Your own limits")
		w.line("")
		w.line(fmt.Sprintf("`GET %s` answers, as JSON, which limits hold for you, what remains and when it resets. It counts against none of them.", o.SelfService))
		w.line("")
	}
	if advice := strings.TrimSpace(o.Advice); advice != "" {
		w.line("## Staying within the limits")
		w.line("")
		w.line(advice)
		w.line("")
	}
	return strings.TrimRight(w.String(), "\n") + "\n"
}

// published are the limits that clients may be told of. A limit may be unlimited
// by itself and have numbers in a plan.
func published(p *policy.Policy) (out []*policy.Limit) {
	for _, l := range p.Limits {
		told := *l
		told.Limit.Unlimited = false
		planned := slices.ContainsFunc(slices.Collect(maps.Values(p.Plans)), func(plan policy.Plan) bool { _, is := plan[l.Name]; return is })
		if l.Mode != policy.Off && (l.Shown() || planned && told.Shown()) {
			out = append(out, l)
		}
	}
	return out
}

type writer struct {
	strings.Builder
	policy *policy.Policy
}

func (w *writer) line(text string) { w.WriteString(text + "\n") }

// endpoints is the table of which limits hold where.
func (w *writer) endpoints(limits []*policy.Limit) {
	w.line("")
	w.line("## By endpoint")
	w.line("")
	w.line("| requests | limits | cost |")
	w.line("|---|---|---|")
	for _, e := range endpoints(limits) {
		var names, costs []string
		for _, l := range limits {
			if !e.under(l) {
				continue
			}
			names = append(names, fmt.Sprintf("[%s](#%s)", l.Name, anchor(l.Name)))
			if cost := e.cost(l); cost != "" {
				costs = append(costs, cost)
			}
		}
		w.row(e.text(), cmp.Or(strings.Join(names, ", "), "none"), strings.Join(slices.Compact(costs), "; "))
	}
	w.line("")
}

// limits has a chapter for each limit, with a row for each plan.
func (w *writer) limits(limits []*policy.Limit) {
	w.line("## The limits")
	w.line("")
	for _, l := range limits {
		w.line("### " + l.Name)
		w.line("")
		w.line(sentence(l))
		w.line("")
		if l.Message != "" {
			w.line(escape(l.Message))
			w.line("")
		}
		if l.Help != "" {
			w.line("More: <" + l.Help + ">")
			w.line("")
		}
		w.line("| plan | limit | what that means |")
		w.line("|---|---|---|")
		w.row("(none)", "`"+l.Limit.String()+"`", bound(l, l.Limit))
		for _, name := range slices.Sorted(maps.Keys(w.policy.Plans)) {
			if said, ok := w.policy.Plans[name][l.Name]; ok {
				n := l.With(said)
				w.row(name, "`"+n.String()+"`", bound(l, n))
			}
		}
		w.line("")
	}
}

func (w *writer) row(cells ...string) {
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", "\\|")
	}
	w.line("| " + strings.Join(cells, " | ") + " |")
}

// anchor is a heading's address, as Markdown renderers make it.
func anchor(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '*' {
			return -1
		}
		return r
	}, name)
}

// escape keeps an operator's text from being taken for Markdown.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "<", `\<`, "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`).Replace(text)
}

// sentence says whose budget a limit counts against, and what counts.
func sentence(l *policy.Limit) string {
	said := "Counted " + whose(l.Per) + "."
	switch l.Limit.Charge {
	case comporta.Attempts:
		said += " Refused requests count too."
	case comporta.Failures:
		said += " Only requests that fail count: " + failures(&l.Failure) + "."
	}
	if e := l.Estimate; e != nil {
		said += " What a request costs is known once it is answered; until then it is charged an estimate."
	}
	if l.OnMissing == policy.Forbid {
		said += " Requests that show none are refused with 401."
	}
	switch {
	case l.Status != 0:
		said += fmt.Sprintf(" What is over it is refused with %d.", l.Status)
	case l.OnLimit == policy.Mark:
		said += " What is over it is not refused, but looked at more closely."
	case l.OnLimit == policy.Demote:
		said += " What is over it is not refused, but comes after other requests."
	}
	if l.Block > 0 {
		said += fmt.Sprintf(" Who was refused is refused for %s.", comporta.FormatDuration(l.Block))
	}
	return said
}

func failures(f *policy.Failure) string {
	var said []string
	for _, status := range f.Status {
		said = append(said, fmt.Sprint(status))
	}
	for _, class := range f.Class {
		said = append(said, fmt.Sprintf("%dxx", class))
	}
	return "those answered with " + strings.Join(said, ", ")
}

// bound says what numbers promise.
func bound(l *policy.Limit, n comporta.Limit) string {
	n.Name = l.Name
	rule, err := n.Compile()
	if err != nil {
		return err.Error()
	}
	switch {
	case n.Unlimited:
		return "not limited"
	case n.Limit == 0:
		return "every request is refused"
	case n.Calendar != nil:
		zone := "UTC"
		if n.Calendar.Zone != nil {
			zone = n.Calendar.Zone.String()
		}
		return fmt.Sprintf("%d in each calendar %v (%s)", n.Limit, n.Calendar.Period, zone)
	}
	window := period(n.Window)
	switch n.Algorithm {
	case comporta.TokenBucket:
		said := fmt.Sprintf("up to %d at once, then %d per %s, evenly", rule.Full(), n.Limit, window)
		if n.MaxWait > 0 {
			said += "; what is over it waits up to " + comporta.FormatDuration(n.MaxWait)
		}
		return said
	case comporta.LeakyBucket:
		return fmt.Sprintf("%d per %s, evenly; up to %d wait for their turn", n.Limit, window, rule.Full())
	case comporta.FixedWindow:
		return fmt.Sprintf("%d in each %s of the clock", n.Limit, window)
	case comporta.SlidingLog:
		return fmt.Sprintf("at most %d in any %s", n.Limit, window)
	}
	return fmt.Sprintf("about %d in any %s, and never %d or more", n.Limit, window, 2*n.Limit)
}

// period is a window in words: minute, 15m.
func period(window time.Duration) string {
	switch window {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	}
	return comporta.FormatDuration(window)
}
