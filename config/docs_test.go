package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const manual = "../docs/policy.md"

func contents(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The manual's examples are files: the good ones are taken, the bad ones have
// the errors that stand below them.
func TestTheManualsExamples(t *testing.T) {
	fence := regexp.MustCompile("(?ms)^```yaml( bad)?\n(.*?)^```\n(?:```text\n(.*?)^```\n)?")
	examples := fence.FindAllStringSubmatch(contents(t, manual), -1)
	if len(examples) < 5 {
		t.Fatalf("only %d examples", len(examples))
	}
	for _, e := range examples {
		_, err := Parse("policy.yaml", []byte(e[2]))
		got := ""
		if err != nil {
			got = err.Error() + "\n"
		}
		if (e[1] == " bad") != (err != nil) {
			t.Errorf("%s\n%v", e[2], err)
		}
		if diff := cmp.Diff(e[3], got); diff != "" {
			t.Errorf("%s(-manual +got):\n%s", e[2], diff)
		}
	}
}

func TestTheManualHasEveryWord(t *testing.T) {
	text := contents(t, manual)
	for _, table := range tables {
		for _, w := range table.words {
			if !strings.Contains(text, "`"+w.name+"`") && !strings.Contains(text, "`{"+w.name+": ") {
				t.Errorf("%s of %q is not in the manual", w.name, table.path)
			}
		}
	}
}

func TestTheManualHasEveryWarningAndNoOther(t *testing.T) {
	code := regexp.MustCompile("W-[A-Z]+(-[A-Z]+)*")
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]bool{}
	for _, file := range sources {
		if !strings.HasSuffix(file, "_test.go") && file != "egress.go" { // those have a manual of their own
			for _, c := range code.FindAllString(contents(t, file), -1) {
				given[c] = true
			}
		}
	}
	told := map[string]bool{}
	for _, c := range code.FindAllString(contents(t, manual), -1) {
		told[c] = true
	}
	if diff := cmp.Diff(given, told); diff != "" {
		t.Errorf("(-source +manual):\n%s", diff)
	}
}
