package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/comporta/comporta/identity"
)

// keyed is a policy that counts by keys.
func keyed(t testing.TB) *Config {
	t.Helper()
	c, err := tuesday.Parse("policy.yaml", []byte(`time_zone: Europe/Paris
identities: {api_key: {header: X-API-Key, keys: keys.yaml}}
plans: {free: {requests: 10/s}, pro: {requests: 20/s}}
limits: [{name: requests, per: [api_key, address], limit: 5/s}]
`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Problems and warnings name line and column, and never a key.
func TestFilesOfKeysAreReadOrRefused(t *testing.T) {
	c := keyed(t)
	for _, file := range files(t, "keys") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c.Keyring.File = filepath.Base(file)
		keys, warnings, err := c.parseKeys(data, 0o640)
		got := ""
		var problems Problems
		switch {
		case errors.As(err, &problems):
			got = problems.Error() + "\n"
		case err != nil:
			t.Fatal(err)
		default:
			problems = warnings
			got = fmt.Sprintf("%d keys\n", keys.Len())
			if len(warnings) > 0 {
				got = problems.Error() + "\n" + got
			}
		}
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.Hint == "" {
				t.Errorf("%s: a problem without place or hint: %+v", file, p)
			}
		}
		if strings.Contains(strings.ToLower(got), "hunter2") {
			t.Errorf("%s: a key is repeated:\n%s", file, got)
		}
		golden(t, strings.TrimSuffix(file, ".yaml")+".txt", got)
	}
}

func TestKeysAreThoseOfTheFile(t *testing.T) {
	c := keyed(t)
	c.Keyring.File = filepath.Join(t.TempDir(), "keys.yaml")
	if err := c.LoadKeys(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(c.Keyring.File, []byte(text), 0o600), os.Chmod(c.Keyring.File, mode)); err != nil {
			t.Fatal(err)
		}
	}
	who := func(key string) string {
		id, _ := c.APIKey.Identity(&identity.Request{Header: map[string][]string{"X-Api-Key": {key}}})
		return id
	}
	write(fmt.Sprintf("- {id: acme, sha256: %q}\n- {id: beta, key: beta-6b0e2d9c4f8a1753}\n", fmt.Sprintf("%X", sha256.Sum256([]byte("acme-6b0e2d9c4f8a1753")))), 0o644)
	if err := c.LoadKeys(); err != nil {
		t.Fatal(err)
	}
	if who("acme-6b0e2d9c4f8a1753") != "api_key:acme" || who("beta-6b0e2d9c4f8a1753") != "api_key:beta" || who("other") != "" {
		t.Error("the keys are not those of the file")
	}
	if _, warnings, err := c.ReadKeys(); err != nil || len(warnings) != 1 || warnings[0].Code != "W-KEYS-OPEN" || warnings[0].Line != 2 {
		t.Errorf("a file that all can read: %v, %v", warnings, err)
	}
	write("- {id: acme}\n", 0o600)
	if err := c.LoadKeys(); err == nil || who("beta-6b0e2d9c4f8a1753") != "api_key:beta" {
		t.Errorf("a bad file changed the keys: %v", err)
	}
	write("[]\n", 0o600)
	if err := c.LoadKeys(); err != nil || who("beta-6b0e2d9c4f8a1753") != "" {
		t.Errorf("a key that was taken away still works: %v", err)
	}
}

// A name that no key has is told where the policy writes it.
func TestIDsThatNoKeyHasAreWarnedOf(t *testing.T) {
	c, err := tuesday.Parse("policy.yaml", []byte(`identities: {api_key: {header: X-API-Key, keys: keys.yaml}}
allow: [{api_key: acme}, {api_key: monitr}, 192.0.2.1]
limits: [{name: a, per: [api_key, address], limit: 5/s}]
overrides:
  - {who: {api_key: acne}, limits: {a: 6/s}, through: 2027-01-31, reason: test}
  - {who: {api_key: acme}, limits: {a: 6/s}, through: 2027-01-31, reason: test}
  - {who: {address: 192.0.2.9}, limits: {a: 6/s}, through: 2027-01-31, reason: test}
`))
	if err != nil {
		t.Fatal(err)
	}
	_, warnings, err := c.parseKeys([]byte("- {id: acme, key: 0123456789abcdef0}\n- {id: monitor, key: b123456789abcdef0}\n"), 0)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, w := range warnings {
		got += fmt.Sprintf("%s:%d:%d %s %s\n", w.File, w.Line, w.Column, w.Code, w.Text)
	}
	const want = "policy.yaml:2:36 W-KEY-UNLISTED no key has the id \"monitr\"\npolicy.yaml:5:21 W-KEY-UNLISTED no key has the id \"acne\"\n"
	if got != want {
		t.Errorf("warned\n%swant\n%s", got, want)
	}
}

// A day is the last one on which a key works, where the file's clocks say so.
func TestKeysExpireAfterTheirDay(t *testing.T) {
	c := keyed(t)
	keys, _, err := c.parseKeys([]byte("- {id: a, key: 0123456789abcdef0, expires: 2027-01-31}\n- {id: b, key: b123456789abcdef0, expires: 2027-01-31T00:00:00Z}\n"), 0)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]time.Time{
		"0123456789abcdef0": time.Date(2027, 1, 31, 23, 0, 0, 0, time.UTC),
		"b123456789abcdef0": time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC),
	} {
		if key, ok, _ := keys.Find(t.Context(), sha256.Sum256([]byte(text))); !ok || !key.Expires.Equal(want) {
			t.Errorf("%s expires at %v, want %v", text, key.Expires, want)
		}
	}
}

// As many keys as there may be are read in seconds; more, and what is hard on a
// parser, is refused in moments.
func TestFilesOfKeysHaveBounds(t *testing.T) {
	c := keyed(t)
	list := func(n int, form string) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, form, i, i)
		}
		return []byte(b.String())
	}
	const block, flow = "- id: client-%d\n  key: 0123456789abcdef-%d\n  plan: pro\n  expires: 2027-01-31\n", "- {id: client-%d, key: 0123456789abcdef-%d, plan: pro}\n"
	data := append(list(19_999, block), "- {id: last, key: short}\n"...)
	keys, warnings, err := c.parseKeys(data, 0)
	if err != nil || keys.Len() != 20_000 || len(warnings) != 1 || warnings[0].Line != 4*19_999+1 || warnings[0].Column != 19 {
		t.Errorf("20,000 keys: %v, %v", warnings, err)
	}
	for name, bad := range map[string]struct {
		data []byte
		want string
	}{
		"too many":      {list(mostKeys+1, flow), "more than 100000 keys"},
		"all wrong":     {list(5000, "- {id: client-%d, key: 0123456789abcdef-%d, plan: none}\n"), "keys.yaml:101:3: from here on the file is not looked at"},
		"too large":     {make([]byte, maxKeysFile+1), "larger than 16MiB"},
		"one line":      {[]byte("[" + strings.Repeat("{id: a, key: b}, ", 100_000) + "]"), "larger than 256 KiB"},
		"one mapping":   {[]byte(strings.Repeat("a: 1\n", 200_000)), "larger than 256 KiB"},
		"one key":       {[]byte("- a: 1\n" + strings.Repeat("  a: 1\n", 20_000)), "too many words"},
		"open mappings": {[]byte(strings.Repeat("- {a: {a: {a: {a: \n", 1000)), "nested too deep"},
	} {
		began := time.Now()
		_, _, err := c.parseKeys(bad.data, 0)
		if err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %.200v", name, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

// However a file is parted, it is read as in one piece.
func TestPiecesAreTheWholeFile(t *testing.T) {
	for _, c := range []struct {
		head, item string
		parted     bool
	}{
		{"", "- {id: a}\n", true}, {"# keys\n\n", "- id: a\n  # of a\n  plan: b\n", true}, {"keys: # ours\n", "  -\r\n    id: a\r\n", true},
		{"keys:\n", "- id: a\n  list:\n    - x\n    - y\n", true}, {"keys: [\n", "{id: a},\n", false}, {"other:\n", "- id: a\n", false}, {"", "---\n", false},
		{"keys:\nkeys:\n", "- a\n", false},
	} {
		data := []byte(c.head + strings.Repeat(c.item, 3*pieceItems))
		found := pieces(data)
		if parted := len(found) > 1; parted != c.parted {
			t.Errorf("%q: %d pieces", c.head+c.item, len(found))
		}
		if !c.parted {
			continue
		}
		joined := []byte(strings.TrimPrefix(c.head, "# keys\n\n")) // which is in the first piece
		for _, p := range found {
			if line := strings.Count(string(joined), "\n"); p.line != line {
				t.Errorf("%q: a piece begins after %d lines, not %d", c.head+c.item, line, p.line)
			}
			joined = append(joined, p.data...)
		}
		if string(joined) != string(data) {
			t.Errorf("%q: the pieces are not the file", c.head+c.item)
		}
	}
}

func FuzzKeys(f *testing.F) {
	found, _ := filepath.Glob(filepath.Join("testdata", "keys", "*.yaml"))
	for _, file := range found {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	c := keyed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, problems, err := c.parseKeys(data, 0o644)
		if (keys == nil) != (err != nil) {
			t.Fatalf("keys and an error: %v", err)
		}
		if err != nil {
			var ps Problems
			if !errors.As(err, &ps) || len(ps) == 0 {
				t.Fatalf("an error that is no problems: %v", err)
			}
			problems = ps
		}
		lines := strings.Split(string(data), "\n")
		for _, p := range problems {
			if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > utf8.RuneCountInString(lines[p.Line-1])+1 || p.Text == "" {
				t.Errorf("not a whole problem, or outside the file: %+v", p)
			}
		}
	})
}
