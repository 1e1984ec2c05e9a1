package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Long files that are as hard on a parser as one can make them: each is refused
// in moments. (Some take time with the square of their length: hence the bounds.)
func TestHostileFilesAreRefusedInTime(t *testing.T) {
	const size = maxFile / 4
	for name, text := range map[string]string{
		"too large":         strings.Repeat("#\n", maxFile),
		"open lists":        "a: " + strings.Repeat("[", size-10),
		"open mappings":     "a: " + strings.Repeat("{a: ", (size-10)/4),
		"dashes":            strings.Repeat("- ", size/2),
		"keys in keys":      strings.Repeat("a: ", size/3),
		"complex keys":      strings.Repeat("? ", size/2),
		"aliases":           "a: &a [x]\nb: [" + strings.Repeat("*a, ", size/4-10) + "]",
		"tags":              "a: " + strings.Repeat("!a ", size/3-10),
		"deep":              steps(1000),
		"one word for ever": strings.Repeat("a: 1\n", size/5),
		"most words":        strings.Repeat("a: 1\n", maxWords),
		"long list":         "headers: [" + strings.Repeat("a, ", size/3-10) + "]",
		"long word":         strings.Repeat("a", size-10) + ": 1",
		"long text":         "time_zone: " + strings.Repeat("a", size-20),
		"long quote":        "time_zone: \"" + strings.Repeat("a", size-20) + "\"",
		"escapes":           "time_zone: \"" + strings.Repeat(`\x41`, size/4-10) + "\"",
		"folded":            "time_zone: >\n" + strings.Repeat("  a\n", size/4-10),
		"broken lines":      "time_zone: a\n" + strings.Repeat("  a\n", size/4-10),
		"many limits":       "limits:\n" + strings.Repeat("- {name: a, per: address, limit: 1/s}\n", size/40),
		"carriage returns":  strings.Repeat("\r", size),
		"remarks":           strings.Repeat("#\n", size/2),
		"colons":            strings.Repeat(":", size),
		"quotes":            strings.Repeat("''", size/2),
		"documents":         strings.Repeat("---\n", size/4),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := Parse("x", []byte(text))
			if err == nil {
				t.Error("taken for a policy")
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestAFileHasItsBounds(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{strings.Repeat("#\n", maxFile/2) + "limits: []", "larger than 256 KiB"},
		{strings.Repeat("a: 1\n", maxWords+1), "more than 5000 words"},
		{"limits: " + strings.Repeat("[", maxDepth+1), "nested too deep"},
		{steps(maxIndent + 1), "nested too deep"},
	} {
		if _, err := Parse("x", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %.200v, want %s", err, c.want)
		}
	}
}

// steps is a file nested n deep by indentation.
func steps(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// Names go on to terminals, logs, header fields and the file system.
func TestControlCharactersAreNoPartOfText(t *testing.T) {
	for _, text := range []string{
		`limits: [{name: a, per: address, limit: 1/s, match: "GET /\x1b[31m"}]`,
		`secret_file: "a\x1b[2J"`, "secret_file: |\n  a\n", `store: {memory: {save: "a\0"}}`,
		`cors: {origins: ["https://a\r\n.example"]}`, `cors: {origins: ["https://a\u009b"]}`,
	} {
		_, err := Parse("policy.yaml", []byte(text+"\n"))
		if err == nil || !strings.Contains(err.Error(), "control character") || strings.ContainsAny(err.Error(), "\x00\x1b\r\u009b") {
			t.Errorf("%s: %q", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, folder := range []string{"good", "bad"} {
		found, _ := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
		for _, file := range found {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("x", data)
		var problems Problems
		switch {
		case err == nil:
			problems = c.Warnings
		case !errors.As(err, &problems) || len(problems) == 0:
			t.Fatalf("an error that is no problems: %v", err)
		}
		lines := strings.Split(string(data), "\n")
		for _, p := range problems {
			if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > utf8.RuneCountInString(lines[p.Line-1])+1 {
				t.Errorf("outside the file: %v", p)
			}
			if p.Text == "" || (p.Code != "") != (err == nil) {
				t.Errorf("not a whole problem: %+v", p)
			}
		}
	})
}
