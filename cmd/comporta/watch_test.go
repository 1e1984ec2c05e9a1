package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// On a timeline in a bubble: changes are gathered until they rest, but not for
// ever; who asks waits for nothing.
func TestChangesAreGathered(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		changes, asks []time.Duration
		want          []time.Duration
	}{
		"one":              {changes: []time.Duration{0}, want: []time.Duration{100 * ms}},
		"a burst":          {changes: []time.Duration{0, 50 * ms, 140 * ms}, want: []time.Duration{240 * ms}},
		"two":              {changes: []time.Duration{0, 500 * ms}, want: []time.Duration{100 * ms, 600 * ms}},
		"without rest":     {changes: every(60*ms, 20), want: []time.Duration{1000 * ms, 1240 * ms}},
		"asked":            {asks: []time.Duration{70 * ms}, want: []time.Duration{70 * ms}},
		"asked meanwhile":  {changes: []time.Duration{0}, asks: []time.Duration{70 * ms}, want: []time.Duration{70 * ms}},
		"nothing happened": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				changes, asks := make(chan struct{}), make(chan os.Signal)
				ctx, stop := context.WithCancel(t.Context())
				begun := time.Now()
				var got []time.Duration
				var running sync.WaitGroup
				running.Go(func() { gather(ctx, changes, asks, func(bool) { got = append(got, time.Since(begun)) }) })
				running.Go(func() {
					for _, at := range test.asks {
						time.Sleep(at - time.Since(begun))
						asks <- os.Interrupt
					}
				})
				for _, at := range test.changes {
					time.Sleep(at - time.Since(begun))
					changes <- struct{}{}
				}
				time.Sleep(time.Minute)
				stop()
				running.Wait()
				if len(got) != len(test.want) {
					t.Fatalf("looked at %v, want %v", got, test.want)
				}
				for i := range got {
					if got[i] != test.want[i] {
						t.Fatalf("looked at %v, want %v", got, test.want)
					}
				}
			})
		})
	}
}

func every(d time.Duration, n int) []time.Duration {
	at := make([]time.Duration, n)
	for i := range at {
		at[i] = time.Duration(i) * d
	}
	return at
}

// However a file is replaced, it is heard of.
func TestEveryWayToReplaceAFileIsHeardOf(t *testing.T) {
	for name, test := range map[string]struct {
		lay, change func(t *testing.T, dir string)
	}{
		"written over": {
			func(t *testing.T, dir string) { write(t, filepath.Join(dir, "policy.yaml"), "a") },
			func(t *testing.T, dir string) { write(t, filepath.Join(dir, "policy.yaml"), "b") },
		},
		"renamed into place": {
			func(t *testing.T, dir string) { write(t, filepath.Join(dir, "policy.yaml"), "a") },
			func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, ".policy.yaml.swp"), "b")
				rename(t, filepath.Join(dir, ".policy.yaml.swp"), filepath.Join(dir, "policy.yaml"))
			},
		},
		"removed and made anew": {
			func(t *testing.T, dir string) { write(t, filepath.Join(dir, "policy.yaml"), "a") },
			func(t *testing.T, dir string) {
				if err := os.Remove(filepath.Join(dir, "policy.yaml")); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, "policy.yaml"), "b")
			},
		},
		"as Kubernetes does": {layMounted, swapMounted},
		"behind a link to elsewhere": {
			func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "elsewhere", "real.yaml"), "a")
				link(t, filepath.Join("elsewhere", "real.yaml"), filepath.Join(dir, "policy.yaml"))
			},
			func(t *testing.T, dir string) { write(t, filepath.Join(dir, "elsewhere", "real.yaml"), "b") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			test.lay(t, dir)
			w := newWatcher(slog.New(slog.DiscardHandler))
			var running sync.WaitGroup
			running.Go(w.run)
			defer running.Wait()
			defer w.close()
			file := filepath.Join(dir, "policy.yaml")
			w.follow([]string{file})
			w.follow([]string{file}) // as after every look
			before, err := sumOf(file)
			if err != nil {
				t.Fatal(err)
			}
			test.change(t, dir)
			for within := time.After(10 * time.Second); ; {
				select {
				case <-w.changes:
				case <-within:
					t.Fatal("nothing was heard")
				}
				if now, err := sumOf(file); err == nil && now != before {
					return
				}
			}
		})
	}
}

// layMounted lays a file as Kubernetes mounts a ConfigMap: policy.yaml leads to
// ..data/policy.yaml, and ..data to a directory of that moment.
func layMounted(t *testing.T, dir string) {
	write(t, filepath.Join(dir, "..2026_01", "policy.yaml"), "a")
	link(t, "..2026_01", filepath.Join(dir, "..data"))
	link(t, filepath.Join("..data", "policy.yaml"), filepath.Join(dir, "policy.yaml"))
}

// swapMounted changes it as Kubernetes does.
func swapMounted(t *testing.T, dir string) {
	write(t, filepath.Join(dir, "..2026_02", "policy.yaml"), "b")
	link(t, "..2026_02", filepath.Join(dir, "..data_tmp"))
	rename(t, filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))
	if err := os.RemoveAll(filepath.Join(dir, "..2026_01")); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}
