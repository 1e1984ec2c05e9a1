package main

import (
	"context"
	"log/slog"
	"sync"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/internal/admin"
	"github.com/comporta/comporta/internal/telemetry"
	"github.com/comporta/comporta/policy"
)

// rankedClients is how many clients each ranking has places for, where operators
// may look at it.
const rankedClients = 100

// operators are served beside the gateway: overrides are told of, and with
// server.admin they can look at clients and change what they may.
type operators struct {
	herald *admin.Herald
	server *admin.Server // nil without server.admin
	log    *slog.Logger
}

// serveOperators opens the administration, if the policy has one. What changes
// through it, and what the reloader puts in force, know of each other from then on.
func serveOperators(r *reloader, counter *telemetry.Telemetry, log *slog.Logger) (*operators, error) {
	o := &operators{log: log}
	o.herald = admin.NewHerald(func() *policy.Engine { return r.inForce.Load().engine }, log)
	r.replaced = o.herald.Changed
	said := r.inForce.Load().cfg.Server.Admin
	if said == nil {
		return o, nil
	}
	var err error
	o.server, err = admin.New(admin.Options{
		Said: *said,
		InForce: func() (*config.Config, *policy.Engine) {
			s := r.inForce.Load()
			return s.cfg, s.engine
		},
		Changing:   &r.changing,
		Overridden: o.herald.Changed,
		Telemetry:  counter,
		Log:        log,
	})
	if err != nil {
		return nil, err
	}
	r.replaced = o.server.Reloaded // which tells the herald too
	log.Info("operators may come in", "admin", o.server.Addr().String())
	return o, nil
}

// run serves them until the context ends.
func (o *operators) run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { o.herald.Run(ctx) })
	if o.server != nil {
		running.Go(func() {
			if err := o.server.Run(ctx); err != nil {
				o.log.Error("operators cannot come in any more", "error", err)
			}
		})
	}
	running.Wait()
}
