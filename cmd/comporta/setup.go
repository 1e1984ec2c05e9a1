package main

import (
	"context"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/internal/gateway"
	"github.com/comporta/comporta/policy"
)

// A setup is a policy with all that is read and made for it.
type setup struct {
	cfg    *config.Config
	sum    string // of the policy file; "" where there is none
	engine *policy.Engine
	self   *gateway.SelfService // nil where clients are told nothing
	files  []besides
	stop   func() // ends what runs for it
}

// besides is a file beside the policy file that is read again when it changes.
type besides struct {
	name string
	sum  string // before it was read first
	load func(ctx context.Context) error
}

// prepare makes a setup, aside of the one that it is to follow; before is nil for
// the first. Nothing of it is in force yet.
func prepare(ctx context.Context, cfg *config.Config, sum string, counts *backend, before *setup) (*setup, error) {
	s := &setup{cfg: cfg, sum: sum, stop: func() {}}
	if err := counts.secret.give(ctx, cfg); err != nil {
		return nil, err
	}
	o := policy.Options{Local: counts.local}
	if before != nil {
		o.Before = before.engine
	}
	var err error
	if s.engine, err = policy.NewEngine(cfg.Policy, counts.store, o); err != nil {
		return nil, err
	}
	if cfg.SelfService != nil {
		o.Before = nil
		if s.self, err = gateway.NewSelfService(cfg.SelfService, s.engine, counts.store, o); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// inForce is what a gateway needs of it.
func (s *setup) inForce() gateway.InForce {
	return gateway.InForce{Server: s.cfg.Server, Engine: s.engine, SelfService: s.self, Hash: short(s.sum)}
}
