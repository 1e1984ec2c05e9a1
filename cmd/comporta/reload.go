package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/internal/gateway"
	"github.com/comporta/comporta/internal/telemetry"
)

// A reloader puts files that have changed in force while the gateway runs. It is
// used by one goroutine, but for inForce, which is for all.
type reloader struct {
	command   *serveCmd
	counts    *backend
	gateway   *gateway.Gateway
	telemetry *telemetry.Telemetry
	log       *slog.Logger

	asks     chan os.Signal
	changing sync.Mutex // held by who changes what is in force, overrides too
	inForce  atomic.Pointer[setup]
	sums     map[string]string // of the files as they were looked at last
	said     map[string]string // what was last said against them
	tried    []besides         // the files beside a policy that could not be put in force
	replaced func()            // told when something else is in force
}

func newReloader(c *serveCmd, first *setup, counts *backend, g *gateway.Gateway, t *telemetry.Telemetry, log *slog.Logger) *reloader {
	r := &reloader{
		command: c, counts: counts, gateway: g, telemetry: t, log: log,
		asks: make(chan os.Signal, 1), sums: map[string]string{first.cfg.File: first.sum}, said: make(map[string]string),
		replaced: func() {},
	}
	r.inForce.Store(first)
	r.note(first)
	if first.sum != "" {
		signal.Notify(r.asks, syscall.SIGHUP)
	}
	return r
}

// note notes the files beside a setup as they were read.
func (r *reloader) note(s *setup) {
	for _, f := range s.beside {
		r.sums[f.name] = f.sum
	}
}

// run looks at the files when they change, and on SIGHUP, until the context ends.
func (r *reloader) run(ctx context.Context) {
	defer signal.Stop(r.asks)
	w := newWatcher(r.log)
	var telling sync.WaitGroup
	telling.Go(w.run)
	defer telling.Wait()
	defer w.close()
	follow := func() {
		for w.follow(r.files()) && ctx.Err() == nil {
			r.look(ctx, false) // what changed after it was read and before it was watched
		}
	}
	follow()
	gather(ctx, w.changes, r.asks, func(asked bool) {
		r.look(ctx, asked)
		follow()
	})
}

// files are those that are looked at.
func (r *reloader) files() []string {
	s := r.inForce.Load()
	files := []string{s.cfg.File}
	for _, f := range slices.Concat(s.beside, r.tried) {
		files = append(files, f.name)
	}
	return files
}

// look puts in force what has changed. Whoever asked is told where nothing has.
func (r *reloader) look(ctx context.Context, asked bool) {
	before := r.inForce.Load()
	changed := r.lookAtPolicy(ctx, asked)
	for _, f := range r.inForce.Load().beside {
		changed = r.lookBeside(ctx, f, asked) || changed
	}
	if asked && !changed {
		r.log.Info("asked to reload: no file has changed", "hash", short(r.inForce.Load().sum))
	}
	if r.inForce.Load() != before {
		r.replaced()
	}
}

// lookAtPolicy reports whether the policy file has changed, or a file that kept it
// from being put in force.
func (r *reloader) lookAtPolicy(ctx context.Context, asked bool) bool {
	is := r.inForce.Load()
	file := is.cfg.File
	sum, err := sumOf(file)
	again := r.said[file] != "" && (asked || slices.ContainsFunc(r.tried, besides.changed))
	if err == nil && sum == r.sums[file] && !again {
		return false
	}
	r.sums[file], r.tried = sum, nil
	switch {
	case err == nil && sum == is.sum:
		r.right(file)
		r.log.Info("the policy file is what is in force again", "file", file, "hash", short(sum))
		return true
	case err == nil:
		err = r.replace(ctx, sum)
	}
	if err != nil {
		r.wrong(file, err, asked)
	}
	return true
}

// replace puts the policy file, whose sum was taken before, in force as it now is.
func (r *reloader) replace(ctx context.Context, sum string) error {
	before := r.inForce.Load()
	cfg, err := config.Load(before.cfg.File)
	if err != nil {
		return err
	}
	if err := r.command.adjust(cfg); err != nil {
		return err
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	next, err := prepare(ctx, cfg, sum, r.counts, before, r.log)
	if err != nil {
		r.tried = next.beside
		return err
	}
	restart, err := r.gateway.Replace(next.inForce())
	if err != nil {
		next.stop()
		return err
	}
	restart = append(restart, keepFixed(before.cfg, cfg)...)
	r.gateway.Waiting(restart)
	r.inForce.Store(next)
	before.stop()
	r.telemetry.Reloaded(true)
	r.log.Info("the policy was reloaded", "hash", short(sum), "before", short(before.sum))
	if len(restart) > 0 {
		r.log.Warn("restart to apply: some words cannot change while the gateway runs", "words", strings.Join(restart, ", "))
	}
	tellWarnings(r.log, cfg.Warnings, before.cfg.Warnings)
	r.note(next)
	for file := range r.said { // all were read, or are no more
		r.right(file)
	}
	return nil
}

// keepFixed keeps what the process cannot change beside its gateway, and names it.
func keepFixed(is, next *config.Config) (restart []string) {
	if !sameStore(&is.Store, &next.Store) {
		restart = append(restart, "store")
	}
	if is.SecretFile != next.SecretFile {
		restart = append(restart, "secret_file")
	}
	next.Store, next.SecretFile = is.Store, is.SecretFile
	return restart
}

// sameStore says whether two policies keep their counts alike.
func sameStore(a, b *config.Store) bool {
	if a.MaxKeys != b.MaxKeys || a.MaxLogBytes != b.MaxLogBytes || a.Save != b.Save || (a.Redis == nil) != (b.Redis == nil) {
		return false
	}
	return a.Redis == nil || a.Redis.Address.String() == b.Redis.Address.String() &&
		a.Redis.PasswordFile == b.Redis.PasswordFile && a.Redis.SentinelPasswordFile == b.Redis.SentinelPasswordFile &&
		a.Redis.Timeout == b.Redis.Timeout && a.Redis.Prefix == b.Redis.Prefix && a.Redis.MaxKnown == b.Redis.MaxKnown
}

// lookBeside reads a file beside the policy again, and reports whether it has changed.
func (r *reloader) lookBeside(ctx context.Context, f besides, asked bool) bool {
	sum, err := sumOf(f.name)
	if err == nil && sum == r.sums[f.name] && !(asked && r.said[f.name] != "") {
		return false
	}
	r.sums[f.name] = sum
	switch {
	case err != nil:
	case f.load == nil:
		return r.replaceFor(ctx, asked)
	default:
		err = f.load(ctx)
	}
	if err != nil {
		r.wrong(f.name, err, asked)
		return true
	}
	r.right(f.name)
	r.telemetry.Reloaded(true)
	r.log.Info("a file was reloaded", "file", f.name)
	return true
}

// replaceFor puts the policy in force anew for a file that only a whole setup reads.
// The policy file, too, is then what it has become.
func (r *reloader) replaceFor(ctx context.Context, asked bool) bool {
	file := r.inForce.Load().cfg.File
	sum, err := sumOf(file)
	if err == nil {
		r.sums[file] = sum
		err = r.replace(ctx, sum)
	}
	if err != nil {
		r.wrong(file, err, asked)
	}
	return true
}

// wrong says, once, that a file cannot be used as it now is.
func (r *reloader) wrong(file string, err error, asked bool) {
	lines := problemsOf(err)
	text := strings.Join(lines, "\n")
	if r.said[file] == text && !asked {
		return
	}
	r.said[file] = text
	r.telemetry.Reloaded(false)
	why := lines[0]
	if len(lines) > 1 {
		why = fmt.Sprintf("%s (and %d more problems)", why, len(lines)-1)
	}
	r.gateway.Trouble(file, why)
	r.log.Error("a changed file cannot be used: what was before stays in force", "file", file, "hash", short(r.inForce.Load().sum), "problems", lines)
}

// right takes back what was said against a file.
func (r *reloader) right(file string) {
	delete(r.said, file)
	r.gateway.Trouble(file, "")
}

// problemsOf is what an error says, one problem a line.
func problemsOf(err error) []string {
	var problems config.Problems
	var path *fs.PathError
	switch {
	case errors.As(err, &problems):
		lines := make([]string, len(problems))
		for i := range problems {
			lines[i] = fmt.Sprint(problems[i])
		}
		return lines
	case errors.As(err, &path):
		return []string{fmt.Sprintf("cannot read %s: %v", path.Path, path.Err)}
	}
	return strings.Split(err.Error(), "\n")
}

// tellWarnings logs warnings about a policy that were not told already.
func tellWarnings(log *slog.Logger, warnings, told []config.Problem) {
	for _, w := range warnings {
		if !slices.ContainsFunc(told, func(t config.Problem) bool { return t.Code == w.Code && t.Text == w.Text }) {
			log.Warn(w.Text, "code", w.Code, "hint", w.Hint, "line", w.Line)
		}
	}
}

// changed says whether a file is another than when it was read.
func (b besides) changed() bool {
	sum, _ := sumOf(b.name)
	return sum != b.sum
}

// sumOf is the SHA-256 of a file, in hex.
func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// short is as much of a sum as tells files apart.
func short(sum string) string { return sum[:min(12, len(sum))] }
