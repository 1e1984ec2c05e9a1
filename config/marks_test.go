package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheKeyOfMarksIsMadeOnceBesideTheSecret(t *testing.T) {
	const limit = "\nlimits: [{name: a, per: address, limit: 1/s, on_limit: mark}]\n"
	for words, want := range map[string]string{
		"":                                  "marks.secret",
		"store: {memory: {save: state/a}}":  "state/marks.secret",
		"secret_file: keys/hash.secret":     "keys/marks.secret",
		"marks: {secret_file: app.secret}":  "app.secret",
		"marks: {header: x-suspicion}":      "marks.secret",
		"store: {redis: redis://127.0.0.1}": "marks.secret",
	} {
		dir := t.TempDir()
		for _, folder := range []string{"state", "keys"} {
			if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		var keys []string
		for range 2 {
			c, err := Parse(filepath.Join(dir, "policy.yaml"), []byte(words+limit))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.LoadMarks(); err != nil {
				t.Fatal(err)
			}
			if c.MarksFile != filepath.Join(dir, want) {
				t.Errorf("%s: the key is in %s, want %s", words, c.MarksFile, want)
			}
			keys = append(keys, string(c.Policy.Marks.Key))
		}
		info, err := os.Stat(filepath.Join(dir, want))
		if err != nil || info.Mode().Perm() != 0o600 || keys[0] != keys[1] || len(keys[0]) < 32 {
			t.Errorf("%s: %v, %v; keys of %d and %d bytes", words, info, err, len(keys[0]), len(keys[1]))
		}
	}
}

func TestMarksHaveAKeyOfTheirOwn(t *testing.T) {
	_, err := Parse("policy.yaml", []byte("secret_file: a\nmarks: {secret_file: a}\nlimits: [{name: a, per: address, limit: 1/s, on_limit: mark}]"))
	if err == nil || !strings.Contains(err.Error(), "another file") {
		t.Errorf("one file for both: %v", err)
	}
	c, err := Parse("policy.yaml", []byte("limits: []"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.LoadMarks(); err != nil || c.MarksFile != "" || c.Policy.Marks != nil {
		t.Errorf("where no limit marks: %v, %q, %v", err, c.MarksFile, c.Policy.Marks)
	}
}
