package config

import (
	"bytes"
	"encoding/json"
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

// The schema takes the good files and the manual's example, and refuses what it can.
func TestEgressSchema(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(EgressSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	takes := func(text string) error {
		top, problems := readTree("egress.yaml", []byte(text), &egressForm)
		if problems != nil {
			t.Fatal(problems)
		}
		return fits(schema, plain(top))
	}
	example := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```\n").FindStringSubmatch(contents(t, egressManual))
	for _, text := range []string{contents(t, "testdata/egress/full.yaml"), contents(t, "testdata/egress/least.yaml"), example[1]} {
		if err := takes(text); err != nil {
			t.Errorf("%v:\n%s", err, text)
		}
	}
	for _, text := range []string{
		"{}", "{apis: {}}", "{apis: [{name: a, path: /}]}", "{apis: [], listens: x}", "{apis: [{name: A, path: /, upstream: u}]}",
		"{apis: [{name: a, path: /, upstream: u, attempts: 0}]}", "{apis: [{name: a, path: /, upstream: u, pace: fast}]}",
		"{apis: [{name: a, path: /, upstream: u, headers: {X: {}}}]}", "{apis: [{name: a, path: /, upstream: u, backoff: {jitter: some}}]}",
	} {
		if takes(text) == nil {
			t.Errorf("taken: %s", text)
		}
		if _, err := ParseEgress("egress.yaml", []byte(text)); err == nil {
			t.Errorf("the reader takes what the schema refuses: %s", text)
		}
	}
}

// Whoever reaches a gateway spends the quota: an address is warned of that others
// than this machine's programs may reach.
func TestEgressListensHere(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:8089": true, "127.8.9.1:0": true, "[::1]:8089": true, "localhost:8089": true, "[::ffff:127.0.0.1]:1": true,
		":8089": false, "0.0.0.0:8089": false, "[::]:8089": false, "10.0.0.5:8089": false, "[fd00::1]:8089": false, "203.0.113.5:8089": false, "gateway:8089": false,
	} {
		e, err := ParseEgress("egress.yaml", []byte(`{listen: "`+listen+`", apis: [{name: a, path: /, upstream: "http://127.0.0.1:1"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if warned := len(e.Warnings) == 1 && e.Warnings[0].Code == "W-EGRESS-PUBLIC"; warned == want {
			t.Errorf("%s: %v", listen, e.Warnings)
		}
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
