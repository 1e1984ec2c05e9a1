package admin

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/policy"
)

// mostOverrides bounds those of run time: more belong into the policy.
const mostOverrides = 1000

// A book has the overrides of run time, in the engine and in a file.
type book struct {
	o Options

	mu   sync.Mutex
	kept []Override
}

// bookFile is what the file holds.
type bookFile struct {
	Version   int        `json:"version"`
	Overrides []Override `json:"overrides"`
}

// openBook reads the file, if there is one, and puts in force what it holds. What
// is wrong with the file is an error; what the policy no longer allows is told to
// the log, and waits.
func openBook(o Options) (*book, error) {
	b := &book{o: o}
	text, err := os.ReadFile(o.Said.Overrides)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the run-time overrides cannot be read: %w", err)
	}
	var file bookFile
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil || file.Version != 1 || len(file.Overrides) > mostOverrides {
		return nil, fmt.Errorf("%s holds no run-time overrides: it was changed by hand, or written by another version; mend it or move it away", o.Said.Overrides)
	}
	b.kept = file.Overrides
	b.reload()
	return b, nil
}

// reload reads the overrides anew under the policy in force.
func (b *book) reload() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.setLocked(b.kept); err != nil {
		b.o.Log.Error("the run-time overrides cannot be put in force", "error", err)
	}
	for _, o := range b.kept {
		if o.Problem != "" {
			b.o.Log.Warn("a run-time override is not in force", "id", o.ID, "who", o.Who, "problem", o.Problem)
		}
	}
}

// setLocked puts overrides in force, in the place of all others, and keeps them;
// those that have ended are left out. On an error nothing has changed.
func (b *book) setLocked(all []Override) error {
	b.o.Changing.Lock()
	defer b.o.Changing.Unlock()
	cfg, engine := b.o.InForce()
	at := now()
	var kept []Override
	var made []*policy.Override
	for _, o := range all {
		is, err := overrideOf(cfg, engine, &o)
		if o.Problem = ""; err != nil {
			o.Problem = err.Error()
		} else if is.Ended(at) {
			continue
		} else {
			made = append(made, is)
		}
		kept = append(kept, o)
	}
	if err := engine.SetOverrides(made); err != nil {
		return err
	}
	b.kept = kept
	b.o.Overridden()
	return nil
}

// overrideOf is an override under a policy.
func overrideOf(cfg *config.Config, engine *policy.Engine, o *Override) (*policy.Override, error) {
	is, err := cfg.Override(textOf(o))
	if err != nil {
		return nil, err
	}
	for name := range o.Limits {
		if !slices.ContainsFunc(engine.Limits(), func(l *policy.Limit) bool { return l.Name == name }) {
			return nil, fmt.Errorf("limit %q is off", name)
		}
	}
	return is, nil
}

func textOf(o *Override) config.OverrideText {
	return config.OverrideText{Who: o.Who, Limits: o.Limits, Through: o.Through, Reason: o.Reason}
}

// list are those that have not ended.
func (b *book) list() []Override {
	b.mu.Lock()
	defer b.mu.Unlock()
	cfg, _ := b.o.InForce()
	list := []Override{}
	for _, o := range b.kept {
		if is, err := cfg.Override(textOf(&o)); err == nil && is.Ended(now()) {
			continue
		}
		o.YAML = textOf(&o).YAML()
		list = append(list, o)
	}
	return list
}

// add begins an override, and is it with what to commit.
func (b *book) add(w Wanted, by string) (Override, error) {
	o := Override{ID: newID(), Who: w.Who, Limits: w.Limits, Through: w.Through, Reason: w.Why, By: by}
	cfg, engine := b.o.InForce()
	is, err := overrideOf(cfg, engine, &o)
	switch {
	case err != nil:
		return o, unprocessable(fmt.Sprintf("There can be no such override: %v.", err))
	case is.Ended(now()):
		return o, unprocessable("Its last day is over: write one that is not.")
	case w.Who == "everyone":
		return o, unprocessable("An override is one client's or one network's: for everyone change the policy.")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.kept) >= mostOverrides {
		return o, unprocessable(fmt.Sprintf("There are %d run-time overrides: commit them into the policy and end them.", mostOverrides))
	}
	if err := b.changeLocked(append(slices.Clone(b.kept), o)); err != nil {
		return o, err
	}
	o.YAML = textOf(&o).YAML()
	return o, nil
}

// end ends an override, and is it.
func (b *book) end(id string) (Override, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.kept, func(o Override) bool { return o.ID == id })
	if i < 0 {
		return Override{}, &failure{http.StatusNotFound, "There is no run-time override of that id; those of the policy file end there."}
	}
	o := b.kept[i]
	return o, b.changeLocked(slices.Delete(slices.Clone(b.kept), i, i+1))
}

// changeLocked puts overrides in force and into the file, or neither.
func (b *book) changeLocked(all []Override) error {
	before := b.kept
	if err := b.setLocked(all); err != nil {
		return unprocessable(fmt.Sprintf("There can be no such override: %v.", err))
	}
	err := b.write()
	if err != nil {
		err = errors.Join(err, b.setLocked(before))
	}
	return err
}

// write writes the file whole and puts it in the place of the old one.
func (b *book) write() error {
	kept := slices.Clone(b.kept)
	for i := range kept {
		kept[i].Problem = "" // which hangs on the policy
	}
	text, err := json.MarshalIndent(bookFile{1, kept}, "", "  ")
	if err != nil {
		return err
	}
	path := b.o.Said.Overrides
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // 0600
	if err != nil {
		return fmt.Errorf("the run-time overrides cannot be kept: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("the run-time overrides cannot be kept: %w", err)
	}
	return nil
}

// newID names an override.
func newID() string { return rand.Text()[:8] }
