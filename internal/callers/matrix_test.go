package callers

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const page = "../../docs/clients.md"

// Between the marks the page holds what was seen, and the settings as they were run.
const (
	begin  = "<!-- matrix -->\n"
	finish = "<!-- /matrix -->\n"
)

// What Debian brings may be another release on another machine; all else that is
// said of it must still hold.
var anyVersion = regexp.MustCompile(`(?m)^\| (curl|urllib3) [0-9.]+`)

// document writes the page, or holds it against what was seen.
func document(t *testing.T, all []caller, trials map[string]trial) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	was, after, ended := strings.Cut(rest, finish)
	if !found || !ended {
		t.Fatalf("%s has no place for the matrix: lines %q and %q", page, begin, finish)
	}
	is := "\n" + table(all, trials) + settings(t, all) + "\n"
	if *update {
		if t.Failed() {
			t.Fatal("nothing is written: first the clients must behave")
		}
		if err := os.WriteFile(page, []byte(before+begin+is+finish+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	const same = "| $1"
	if diff := cmp.Diff(anyVersion.ReplaceAllString(was, same), anyVersion.ReplaceAllString(is, same)); diff != "" {
		t.Errorf("%s says something else than was seen; run with -update (-page +seen):\n%s", page, diff)
	}
}

// table is a row for each client.
func table(all []caller, trials map[string]trial) string {
	var b strings.Builder
	b.WriteString("| client | a refused GET | a refused POST | seconds told | no time told | an hour told | an hour told, set up | to set up | verdict |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range all {
		of := func(run string) trial { return trials[idOf(c.name, run)] }
		post, refused := of("post"), of("plain")
		if strings.HasPrefix(c.name, "package") { // which are refused nothing, if they may look
			post, refused = of("blind-post"), of("blind")
		}
		again := resends(post)
		if c.grpc {
			again = "–"
		}
		name, verdict := strings.TrimSpace(c.name+" "+c.version), "behaves"
		if strings.HasPrefix(c.name, "package") {
			name = "our `" + strings.TrimPrefix(c.name, "package ") + "`"
		}
		hour, dear := long(of("long")), dearly(of("dear"))
		switch {
		case strings.Contains(hour, "early"), strings.Contains(dear, "at once"):
			verdict = "**hammers** unless set up"
		case strings.HasPrefix(hour, "waits"):
			verdict = "behaves; bound its waits"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", name, resends(refused), again, waits(of("bucket"), of("window"), of("blind")), dear, hour, long(of("long-tuned")), c.setup, verdict)
	}
	return b.String()
}

func resends(r trial) string {
	switch {
	case r.refused() == 0:
		return "never refused"
	case r.resent() > 0:
		return "sent again"
	}
	return "given back"
}

// waits says whether a client waits for the time that it is told.
func waits(of ...trial) string {
	for _, r := range of {
		if earliness(r.exchanges) > early {
			return "comes back early"
		}
	}
	return "waits them all"
}

// long is what a client does that is told to wait an hour.
func long(r trial) string {
	switch {
	case len(r.timers) > 0 && r.timers[0] < time.Hour-time.Minute:
		return fmt.Sprintf("early: comes back after %v s", r.timers[0].Seconds())
	case earliness(r.exchanges) > early:
		return "early: comes back within seconds"
	case r.stopped:
		return "waits"
	case len(r.statuses) == 2 && r.statuses[1] == 504:
		return "waits until its deadline"
	case len(r.statuses) == 2 && r.statuses[1] == 429:
		return "given back"
	}
	return fmt.Sprintf("%+v", r)
}

// dearly is what one does that is refused without being told when to come back. The
// least backoff that any has is half a second and then a whole one; who has none
// may still be slow on a busy machine.
func dearly(r trial) string {
	n := len(r.exchanges)
	switch {
	case n == 0:
		return "not sent"
	case n == 1 && !r.stopped:
		return "given back"
	case n > 1 && r.exchanges[n-1].at.Sub(r.exchanges[0].left) < time.Duration(n-1)*450*time.Millisecond:
		return fmt.Sprintf("sent again at once, %d times", n-1)
	}
	return "backs off"
}

// settings are those that the runs had, as they were.
func settings(t *testing.T, all []caller) string {
	var b strings.Builder
	for _, c := range all {
		if c.source == "" {
			continue
		}
		text, err := os.ReadFile(c.source)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(text), "as documented\n")
		part, _, ended := strings.Cut(rest, "end\n")
		if !found || !ended {
			t.Fatalf("%s has no settings to show", c.source)
		}
		var lines []string
		for line := range strings.Lines(part[:strings.LastIndexByte(part, '\n')+1]) { // without the mark's own beginning
			line = strings.TrimPrefix(strings.TrimRight(line, "\n"), "\texec ")
			lines = append(lines, strings.ReplaceAll(line, `"$@"`, "URL"))
		}
		fmt.Fprintf(&b, "\n### %s\n\n```%s\n%s\n```\n", c.name, c.lang, strings.TrimSpace(strings.Join(lines, "\n")))
	}
	return b.String()
}
