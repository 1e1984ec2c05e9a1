package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written is a policy file of its own with a store.
func written(t *testing.T, store string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("store: {redis: "+store+"}\nlimits: [{name: a, per: {header: X-Key}, limit: 1/s}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAPasswordForAllToReadIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		store string
		mode  os.FileMode
		want  bool
	}{
		{`"redis://:hunter2@127.0.0.1"`, 0o644, true},
		{`"redis://:hunter2@127.0.0.1"`, 0o640, false},
		{`"redis-sentinel://127.0.0.1/main?sentinel_password=hunter2"`, 0o604, true},
		{`{url: "redis://127.0.0.1", password_file: p}`, 0o644, false},
	} {
		config, err := Load(written(t, c.store, c.mode))
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		for _, w := range config.Warnings {
			said.WriteString(w.String())
		}
		if got := strings.Contains(said.String(), "W-PASSWORD-OPEN"); got != c.want || strings.Contains(said.String(), "hunter2") {
			t.Errorf("%s, mode %o: %s", c.store, c.mode, &said)
		}
	}
}

func TestPasswordsComeFromFiles(t *testing.T) {
	file := written(t, `{url: "redis-sentinel://user:@127.0.0.1/main", password_file: p, sentinel_password_file: s}`, 0o600)
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.LoadPasswords(); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "password file: ") {
		t.Errorf("without the files: %v", err)
	}
	for name, text := range map[string]string{"p": "hunter 2\r\n", "s": "three"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), name), []byte(text), 0o444); err != nil { // as Docker mounts them
			t.Fatal(err)
		}
	}
	if err := c.LoadPasswords(); err != nil {
		t.Fatal(err)
	}
	if a := c.Store.Redis.Address; a.Username != "user" || a.Password != "hunter 2" || a.SentinelPassword != "three" {
		t.Errorf("got %q, %q and %q", a.Username, a.Password, a.SentinelPassword)
	}
}

func TestBadPasswordFilesAreRefusedAndNotRepeated(t *testing.T) {
	file := written(t, `{url: "redis://127.0.0.1", password_file: p}`, 0o600)
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "\n", "hunter2\nhunter3\n", strings.Repeat("hunter2", 1000)} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), "p"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.LoadPasswords(); err == nil || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// With a secret file that is what all others are asked to have; without one they
// say what it is.
func TestTheSecretIsAgreedOn(t *testing.T) {
	const words = "store: {redis: \"redis://127.0.0.1\"}\n"
	dir := t.TempDir()
	file := filepath.Join(dir, "s")
	if err := os.WriteFile(file, []byte("what the file holds\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for more, has := range map[string]string{"": "", "secret_file: s": "what the file holds"} {
		c, id := withSecret(t, dir, words+more)
		if err := c.ShareSecret(func(mine []byte) ([]byte, error) {
			if string(mine) != has {
				t.Errorf("%s: mine is %q, want %q", more, mine, has)
			}
			return []byte("what all of them use"), nil
		}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id())
	}
	if ids[0] != ids[1] {
		t.Errorf("under one secret one value is %s and %s", ids[0], ids[1])
	}
	c, _ := withSecret(t, dir, words)
	refused := errors.New("two secrets")
	if err := c.ShareSecret(func([]byte) ([]byte, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}
