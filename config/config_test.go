package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

var update = flag.Bool("update", false, "rewrite the expected outputs; read the difference before committing it")

// files are the policy files of a folder of testdata.
func files(t *testing.T, folder string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no files in testdata/%s: %v", folder, err)
	}
	return found
}

// golden compares with the file beside, or rewrites it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// tuesday is the day of all tests.
var tuesday = Options{Now: func() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }}

// parse reads a file under its base name and on one day, so that outputs are the
// same everywhere and always.
func parseFile(t *testing.T, file string) (*Config, error) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return tuesday.Parse(filepath.Base(file), data)
}

func TestGoodFilesAreUnderstood(t *testing.T) {
	for _, file := range files(t, "good") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := parseFile(t, file)
			if err != nil {
				t.Fatal(err)
			}
			var text, json bytes.Buffer
			if err := errors.Join(c.WriteText(&text), c.WriteJSON(&json)); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			for _, w := range c.Warnings {
				said.WriteString(w.String() + "\n")
			}
			said.WriteString(text.String())
			base := strings.TrimSuffix(file, ".yaml")
			golden(t, base+".txt", said.String())
			golden(t, base+".json", json.String())
		})
	}
}

// What is valid here is valid for the engine: nothing is left to fail at start.
func TestGoodFilesMakeEngines(t *testing.T) {
	for _, file := range files(t, "good") {
		c, err := parseFile(t, file)
		if err != nil {
			t.Fatal(err)
		}
		store, err := memstore.New(memstore.Options{MaxKeys: 1000})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if marks := c.Policy.Marks; marks != nil {
			marks.Key = make([]byte, 32) // as LoadMarks reads it
		}
		if _, err := policy.NewEngine(c.Policy, store, policy.Options{Local: store}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestBadFilesAreRefusedWithAllTheirFaults(t *testing.T) {
	for _, file := range files(t, "bad") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := parseFile(t, file)
			var problems Problems
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want problems", err)
			}
			for _, p := range problems {
				if p.Line < 1 || p.Column < 1 || p.Text == "" || p.Hint == "" || p.Code != "" {
					t.Errorf("a problem without place, text or hint: %+v", p)
				}
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", problems.Error()+"\n")
		})
	}
}
