// Package nodetest gives tests the packages from npm that a lock names.
package nodetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Dir is a directory with what is in from, which has a package.json and its lock,
// and beside it the packages that the lock names. These are kept between runs,
// under the lock's hash. Where npm cannot fetch them the test fails.
func Dir(t testing.TB, from string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		hash.Write(text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	kept := filepath.Join(cache, "comporta-test", fmt.Sprintf("node-%x", hash.Sum(nil)[:12]))
	if _, err := os.Stat(kept); errors.Is(err, os.ErrNotExist) {
		install(t, dir, kept)
	}
	if err := os.Symlink(filepath.Join(kept, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// install has npm fetch the packages that dir's lock names, and keeps them. Of two
// tests that do so at once, the first one's stay.
func install(t testing.TB, dir, kept string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		t.Fatal(err)
	}
	apart, err := os.MkdirTemp(filepath.Dir(kept), "new-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(apart)
	if err := os.CopyFS(apart, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = apart
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm cannot fetch what package-lock.json names: %v\n%s", err, out)
	}
	if err := os.Rename(apart, kept); err != nil && !errors.Is(err, os.ErrExist) {
		if _, there := os.Stat(kept); there != nil {
			t.Fatal(err)
		}
	}
}
