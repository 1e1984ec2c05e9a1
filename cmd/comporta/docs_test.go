package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite what simulate prints in the documentation, and the pictures it draws there")

var (
	// transcript is a block of one simulate command and what it prints.
	transcript = regexp.MustCompile("(?s)```console\n\\$ comporta simulate (.*?)\n(.*?)```\n")
	// argument is a word of a command line, plain or in single quotes.
	argument = regexp.MustCompile(`'[^']*'|[^\s']+`)
)

// The documentation shows what the command prints, to the letter, and the
// pictures that it draws.
func TestDocumentationIsWhatSimulatePrints(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, filepath.Join(root, "README.md"))
	if !*update {
		t.Chdir(t.TempDir()) // pictures are drawn here, and compared
		if err := os.Mkdir("docs", 0o755); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Chdir(root)
	}
	for _, page := range pages {
		was, err := os.ReadFile(page)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		is := transcript.ReplaceAllStringFunc(string(was), func(block string) string {
			command := transcript.FindStringSubmatch(block)[1]
			return fmt.Sprintf("```console\n$ comporta simulate %s\n%s```\n", command, printed(t, command))
		})
		if *update {
			if err := os.WriteFile(page, []byte(is), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if diff := cmp.Diff(string(was), is); diff != "" {
			t.Errorf("%s: simulate prints something else; run with -update (-page +printed):\n%s", page, diff)
		}
	}
	pictures, err := filepath.Glob("docs/*.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, picture := range pictures {
		drawn, err := os.ReadFile(picture)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := os.ReadFile(filepath.Join(root, picture))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(shown), string(drawn)); diff != "" {
			t.Errorf("%s: simulate draws something else; run with -update (-shown +drawn):\n%s", picture, diff)
		}
	}
}

// printed is what a simulate command prints. It may end in "| tail -n 1".
func printed(t *testing.T, command string) string {
	t.Helper()
	command, last := strings.CutSuffix(command, " | tail -n 1")
	args := argument.FindAllString(command, -1)
	for i := range args {
		args[i] = strings.Trim(args[i], "'")
	}
	code, out, errs := simulate(t, "", args...)
	if code != exitOK {
		t.Fatalf("%s: exit %d, %s", command, code, errs)
	}
	if last {
		lines := strings.SplitAfter(strings.TrimSuffix(out, "\n"), "\n")
		out = lines[len(lines)-1] + "\n"
	}
	return out
}
