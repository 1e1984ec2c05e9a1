package main

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/internal/gateway"
	"github.com/comporta/comporta/internal/keysource"
	"github.com/comporta/comporta/policy"
)

// A setup is a policy with all that is read and made for it.
type setup struct {
	cfg    *config.Config
	sum    string // of the policy file; "" where there is none
	engine *policy.Engine
	self   *gateway.SelfService // nil where clients are told nothing
	ring   identity.Keyring     // that is asked for API keys; nil where a file holds them, or there are none
	failed uint64               // look-ups of API keys that rings before it made in vain
	beside []besides
	stop   func() // ends what runs for it
}

// besides is a file beside the policy file.
type besides struct {
	name string
	sum  string // before it was read first
	// load reads it again, at any time; nil where the whole setup has to be made anew.
	load func(ctx context.Context) error
}

// prepare makes a setup, aside of the one that it is to follow; before is nil for
// the first. Nothing of it is in force yet. Beside an error it tells the files that
// it came to.
func prepare(ctx context.Context, cfg *config.Config, sum string, counts *backend, before *setup, log *slog.Logger) (*setup, error) {
	s := &setup{cfg: cfg, sum: sum, stop: func() {}}
	if before != nil {
		s.failed = before.failedLookups()
	}
	if err := counts.secret.give(ctx, cfg); err != nil {
		return s, err
	}
	s.follow(cfg.MarksFile, nil)
	if err := cfg.LoadMarks(); err != nil {
		return s, err
	}
	for i := range s.beside { // one that was created just now has not changed since
		if b := &s.beside[i]; b.sum == "" {
			b.sum, _ = sumOf(b.name)
		}
	}
	if err := s.findKeys(counts, before, log); err != nil {
		return s, err
	}
	o := policy.Options{Local: counts.local}
	if before != nil {
		o.Before = before.engine
	}
	var err error
	if s.engine, err = policy.NewEngine(cfg.Policy, counts.store, o); err != nil {
		return s, err
	}
	if cfg.SelfService != nil {
		if s.self, err = gateway.NewSelfService(cfg.SelfService, s.engine, counts.store, policy.Options{Local: counts.local}); err != nil {
			return s, err
		}
	}
	if err := s.findUsers(ctx, before != nil, log); err != nil {
		return s, err
	}
	s.run(ctx, log)
	return s, nil
}

// follow has a file watched; it is to be read after that.
func (s *setup) follow(file string, load func(ctx context.Context) error) {
	if file == "" {
		return
	}
	sum, _ := sumOf(file) // who reads it tells what is wrong
	s.beside = append(s.beside, besides{file, sum, load})
}

// findKeys gives the API keys to who asks for them.
func (s *setup) findKeys(counts *backend, before *setup, log *slog.Logger) error {
	k := s.cfg.Keyring
	switch {
	case k == nil:
		return nil
	case k.File != "":
		load := func(context.Context) error { return loadKeys(s.cfg, log) }
		s.follow(k.File, load)
		return loadKeys(s.cfg, log)
	case before != nil && before.ring != nil && reflect.DeepEqual(before.cfg.Keyring, k):
		s.ring, s.failed = before.ring, before.failed // with all that it remembers
	default:
		lookup, err := lookupOf(k, counts)
		if err != nil {
			return err
		}
		if s.ring, err = identity.NewCached(lookup, k.Cached); err != nil {
			return err
		}
	}
	s.cfg.APIKey.Use(s.ring)
	return nil
}

// lookupOf is how keys are looked up that no file holds.
func lookupOf(k *config.Keyring, counts *backend) (identity.Lookup, error) {
	if k.URL != nil {
		return keysource.NewHTTP(k.URL, keysource.HTTPOptions{TokenFile: k.TokenFile})
	}
	if counts.client == nil {
		return nil, fmt.Errorf("the API keys are in the Redis hash %s, but the counts are not in Redis: restart to apply", k.Redis)
	}
	return keysource.NewRedis(counts.client, k.Redis)
}

// loadKeys reads the file of keys and tells what in it is probably not meant.
func loadKeys(cfg *config.Config, log *slog.Logger) error {
	keys, warnings, err := cfg.ReadKeys()
	if err != nil {
		return err
	}
	cfg.APIKey.Use(keys)
	for _, w := range warnings {
		log.Warn(w.Text, "code", w.Code, "hint", w.Hint, "file", cfg.Keyring.File, "line", w.Line)
	}
	return nil
}

// findUsers reads the keys that tokens are verified with. A URL that does not answer
// keeps no gateway from starting, but a policy that would forget the keys that are
// known is not put in force.
func (s *setup) findUsers(ctx context.Context, running bool, log *slog.Logger) error {
	users := s.cfg.User
	if users == nil {
		return nil
	}
	s.follow(s.cfg.UserFile, users.Load)
	err := users.Load(ctx)
	if err == nil || s.cfg.UserFile != "" || running {
		return err
	}
	log.Warn("the keys of tokens cannot be read yet: until they can be, no token proves anything", "error", err)
	return nil
}

// run keeps the keys of a URL fresh until stop, and tells the log when what is asked
// elsewhere does not answer.
func (s *setup) run(ctx context.Context, log *slog.Logger) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	if users := s.cfg.User; users != nil {
		all.Go(func() { users.Run(running) })
	}
	if remotes := s.remotes(); len(remotes) > 0 {
		all.Go(func() { watch(running, remotes, log) })
	}
	s.stop = func() {
		stop()
		all.Wait()
	}
}

// inForce is what a gateway needs of it.
func (s *setup) inForce() gateway.InForce {
	return gateway.InForce{Server: s.cfg.Server, Engine: s.engine, SelfService: s.self, Hash: short(s.sum)}
}
