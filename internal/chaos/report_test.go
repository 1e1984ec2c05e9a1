package chaos

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what was measured into docs/reliability.md")

// A report gathers the rows of the table in docs/reliability.md.
type report struct{ rows []row }

// A row is what happens, what it may cost, and what it cost this time.
type row struct {
	name, bound string
	measured    [4]string
}

// suffer lets failures happen to a fleet, one after another. What came late came
// late three times.
func (r *report) suffer(t *testing.T, f *fleet, all []failure) {
	for i, x := range all {
		t.Run(x.name, func(t *testing.T) {
			c, late := f.suffer(t, i, x)
			for try := 1; try < 3 && (late != nil || c.disturbed); try++ {
				t.Logf("once more, for the machine may be busy: %+v %q", c, late)
				c, late = f.suffer(t, i+20*try, x)
			}
			for _, l := range late {
				t.Error(l)
			}
			r.rows = append(r.rows, row{x.name, x.bound, [4]string{
				fmt.Sprint(c.passed), milliseconds(c.p99) + " / " + milliseconds(c.most), milliseconds(c.back), fmt.Sprintf("%.1f MB", max(0, float64(c.grown)/1e6)),
			}})
		})
	}
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d)/1e6) }

func (r *row) String() string {
	return fmt.Sprintf("| %s | %s | %s |\n", r.name, r.bound, strings.Join(r.measured[:], " | "))
}

const head = `| what happens | a client with a limit of 100 gets at most | it got | p99 / longest wait for limits | exact again after | memory grew by |
|---|---|---|---|---|---|
`

// TestReliability makes stores fail in all ways and prints what it measured: the
// table in docs/reliability.md, which must have the same rows and bounds.
func TestReliability(t *testing.T) {
	groups := []struct {
		name string
		run  func(*testing.T, *report)
	}{
		{"healthy", healthy},
		{"single", singleFails},
		{"network", networkFails},
		{"sentinel", sentinelFails},
		{"cluster", clusterFails},
		{"leases", leaseFails},
	}
	r, ran := &report{}, 0
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) { ran++; g.run(t, r) })
	}
	table := head
	for i := range r.rows {
		table += r.rows[i].String()
	}
	t.Logf("measured:\n%s", table)
	if ran < len(groups) || t.Failed() {
		return
	}
	const file = "../../docs/reliability.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		text = tables.ReplaceAllLiteral(text, []byte(table))
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := promises(string(tables.Find(text))), promises(table); got != want {
		t.Errorf("%s promises:\n%s\nthe test holds:\n%s\nWrite it anew with -update.", file, got, want)
	}
}

// tables finds the one table that is ours.
var tables = regexp.MustCompile(`(?m)^\| what happens \| a client with.*\n(\|.*\n)*`)

// promises are the first two columns of a table.
func promises(table string) string {
	var out strings.Builder
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			fmt.Fprintf(&out, "%s|%s\n", cells[1], cells[2])
		}
	}
	return out.String()
}
