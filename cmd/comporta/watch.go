package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// quietFor is how long no file may have changed before files are looked at: an
	// editor writes one in several steps.
	quietFor = 100 * time.Millisecond
	// lookWithin is when they are looked at though changes go on.
	lookWithin = time.Second
)

// gather calls look once changes have come to rest, or have gone on for too long,
// and, with asked set, as soon as somebody asks. It ends with the context.
func gather(ctx context.Context, changes <-chan struct{}, asks <-chan os.Signal, look func(asked bool)) {
	var quiet, latest <-chan time.Time // nil while there is nothing to look at
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-changes:
			quiet = time.After(quietFor)
			if latest == nil {
				latest = time.After(lookWithin)
			}
			continue
		case <-asks:
			asked = true
		case <-quiet:
		case <-latest:
		}
		quiet, latest = nil, nil
		look(asked)
	}
}

// A watcher tells of changes near files: in their directories, since a file that
// an editor or Kubernetes replaces is another one under the same name. It may tell
// of more than files' changes, and of one many times.
type watcher struct {
	changes chan struct{}
	log     *slog.Logger
	files   *fsnotify.Watcher // nil where the system has no more of them
	dirs    map[string]bool
}

func newWatcher(log *slog.Logger) *watcher {
	w := &watcher{changes: make(chan struct{}, 1), log: log, dirs: make(map[string]bool)}
	files, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("files cannot be watched: changes are seen on SIGHUP alone", "error", err)
		return w
	}
	w.files = files
	return w
}

// run tells of changes until close.
func (w *watcher) run() {
	if w.files == nil {
		return
	}
	for {
		select {
		case _, open := <-w.files.Events:
			if !open {
				return
			}
		case _, open := <-w.files.Errors: // events were lost: there was one, then
			if !open {
				return
			}
		}
		select {
		case w.changes <- struct{}{}:
		default: // one is waiting to be told already
		}
	}
}

// follow watches the directories of these files, and of what they link to, and no
// others any more. It reports whether one of them was not watched before: what
// changed there until now was not told of.
func (w *watcher) follow(files []string) (more bool) {
	if w.files == nil {
		return false
	}
	dirs := make(map[string]bool)
	for _, file := range files {
		dirs[filepath.Dir(file)] = true
		if target, err := filepath.EvalSymlinks(file); err == nil {
			dirs[filepath.Dir(target)] = true
		}
	}
	for dir := range w.dirs {
		if !dirs[dir] {
			_ = w.files.Remove(dir) // it may be gone
		}
	}
	for dir := range dirs {
		// Also one that is watched: it may be another directory by now.
		err := w.files.Add(dir)
		switch {
		case w.dirs[dir]:
		case err != nil:
			w.log.Warn("a directory cannot be watched: changes in it are seen on SIGHUP alone", "directory", dir, "error", err)
		default:
			more = true
		}
	}
	w.dirs = dirs
	return more
}

func (w *watcher) close() {
	if w.files != nil {
		_ = w.files.Close()
	}
}
