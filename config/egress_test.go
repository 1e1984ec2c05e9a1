package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const egressManual = "../docs/egress.md"

func TestEgressManual(t *testing.T) {
	text := contents(t, egressManual)
	for _, words := range [][]word{egressWords, egressAPIWords, egressHeaderWords, egressBackoffWords} {
		for _, w := range words {
			if !strings.Contains(text, "| `"+w.name+"` |") {
				t.Errorf("%s is not in the manual", w.name)
			}
		}
	}
	example := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```\n").FindStringSubmatch(text)
	if _, err := ParseEgress("egress.yaml", []byte(example[1])); err != nil {
		t.Errorf("the manual's example: %v", err)
	}
	for _, code := range []string{"W-EGRESS-PUBLIC", "W-EGRESS-SECRET"} {
		if !strings.Contains(text, code) {
			t.Errorf("%s is not in the manual", code)
		}
	}
}

// Files under testdata/egress: what is understood of the good ones, and what is
// said of the bad ones, stands beside them.
func TestEgressFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/egress/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var got bytes.Buffer
			e, err := LoadEgress(file)
			var problems Problems
			switch {
			case errors.As(err, &problems):
				got.WriteString(err.Error() + "\n")
			case err != nil:
				t.Fatal(err)
			default:
				if err := e.WriteText(&got); err != nil {
					t.Fatal(err)
				}
				for _, w := range e.Warnings {
					got.WriteString(w.String() + "\n")
				}
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(contents(t, golden), got.String()); d != "" {
				t.Errorf("(-golden +got):\n%s", d)
			}
		})
	}
}

// A password that every user of the machine can read is warned of here, too.
func TestEgressPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "egress.yaml")
	text := `{store: {redis: "redis://:hunter2@127.0.0.1"}, apis: [{name: a, path: /, upstream: "http://127.0.0.1:1"}]}`
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o644: 1} {
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		e, err := LoadEgress(file)
		if err != nil || len(e.Warnings) != want || want == 1 && e.Warnings[0].Code != "W-PASSWORD-OPEN" {
			t.Error(mode, err, e.Warnings)
		}
	}
}

func FuzzEgress(f *testing.F) {
	files, _ := filepath.Glob("testdata/egress/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := ParseEgress("egress.yaml", data)
		if err == nil {
			for _, a := range e.APIs {
				if a.Upstream == nil || !strings.HasPrefix(a.Path, "/") || a.Name == "" {
					t.Fatalf("%+v", a)
				}
			}
		}
	})
}
