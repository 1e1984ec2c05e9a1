package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/comporta/comporta/identity"
)

// withSecret is a config whose one limit counts per header, and the identity
// that it then gives a value.
func withSecret(t *testing.T, dir, more string) (*Config, func() string) {
	t.Helper()
	c, err := Parse(filepath.Join(dir, "policy.yaml"), []byte(more+"\nlimits: [{name: a, per: {header: X-Key}, limit: 1/s}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	return c, func() string {
		id, _ := c.Policy.Limits[0].Per.Identity(&identity.Request{Header: map[string][]string{"X-Key": {"v"}}})
		return id
	}
}

func TestTheSecretIsMadeOnceBesideTheSaveFile(t *testing.T) {
	dir := t.TempDir()
	const words = "store: {memory: {save: counts}}"
	first, id := withSecret(t, dir, words)
	file := filepath.Join(dir, "counts.secret")
	if first.SecretFile != file {
		t.Fatalf("the secret is in %s, want %s", first.SecretFile, file)
	}
	if _, err := os.Stat(file); err == nil {
		t.Fatal("parsing alone made the secret")
	}
	if err := first.LoadSecret(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the secret file: %v, %v", info, err)
	}
	second, idAgain := withSecret(t, dir, words)
	if err := second.LoadSecret(); err != nil {
		t.Fatal(err)
	}
	if a, b := id(), idAgain(); a != b {
		t.Errorf("after a restart %s is %s", a, b)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".secret-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestWithoutAFileEachProcessHasASecretOfItsOwn(t *testing.T) {
	first, id := withSecret(t, t.TempDir(), "")
	second, other := withSecret(t, t.TempDir(), "")
	for _, c := range []*Config{first, second} {
		if err := c.LoadSecret(); err != nil {
			t.Fatal(err)
		}
	}
	if id() == other() {
		t.Error("two processes made the same secret")
	}
}

func TestProcessesThatStartAtOnceAgreeOnASecret(t *testing.T) {
	dir := t.TempDir()
	ids := make(chan string)
	for range 8 {
		c, id := withSecret(t, dir, "secret_file: s")
		go func() {
			if err := c.LoadSecret(); err != nil {
				ids <- err.Error()
				return
			}
			ids <- id()
		}()
	}
	want := <-ids
	for range 7 {
		if got := <-ids; got != want {
			t.Errorf("%s and %s", want, got)
		}
	}
}

func TestBadSecretFilesAreRefusedAndNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"short":  {"hunter2\n", 0o600, "less than 16"},
		"empty":  {"", 0o600, "less than 16"},
		"open":   {"hunter2hunter2hunter2", 0o604, "chmod 600"},
		"larger": {strings.Repeat("hunter2", 1000), 0o600, "larger"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "s")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil {
			t.Fatal(err)
		}
		config, _ := withSecret(t, dir, "secret_file: s")
		err := config.LoadSecret()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
