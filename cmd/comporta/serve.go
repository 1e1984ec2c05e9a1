package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/internal/gateway"
	"github.com/comporta/comporta/internal/telemetry"
)

// serveCmd runs the gateway: on a policy file, on one limit from flags, or, with
// neither, as a demonstration.
type serveCmd struct {
	Config string `short:"c" placeholder:"FILE" help:"The policy file."`

	Upstream  string `placeholder:"URL" help:"Without a file: the API to protect, like http://127.0.0.1:9000."`
	Limit     string `placeholder:"LIMIT" help:"Without a file: its limit, like '100/min burst 20'."`
	Algorithm string `placeholder:"NAME" help:"Without a file: token_bucket (the default), leaky_bucket, fixed_window, sliding_counter or sliding_log."`
	Per       string `placeholder:"WHO" help:"Without a file: whose budget it is: address (the default), everyone, or header:NAME."`
	Store     string `placeholder:"URL" help:"Without a file: the Redis or Valkey that keeps the counts, like redis://127.0.0.1:6379 (default: in memory)."`

	Listen     string        `placeholder:"HOST:PORT" help:"Where clients connect (default: the file's, or 127.0.0.1:8080)."`
	Metrics    string        `placeholder:"HOST:PORT" help:"Where /healthz, /readyz and /metrics are served; off for nowhere (default: the file's, or 127.0.0.1:9901)."`
	Log        string        `placeholder:"FORMAT" enum:"auto,json,text" default:"auto" help:"How logs are written: json, text, or auto (the default): text in the demonstration, json otherwise."`
	AccessLog  bool          `negatable:"" default:"true" help:"Write a line for each request to the standard output (default: yes)."`
	DrainDelay time.Duration `default:"1s" placeholder:"TIME" help:"When stopping, how long new connections are still accepted while /readyz says 503 (default: 1s)."`
}

// repayAtEnd is how long a gateway that stops charges what quotas spent without
// the store.
const repayAtEnd = 5 * time.Second

// Run serves until the context ends.
func (c *serveCmd) Run(ctx context.Context, std *streams) error {
	demo := c.Config == "" && c.Upstream == "" && c.Limit == "" && c.Algorithm == "" && c.Per == ""
	if demo {
		api, err := startDemo()
		if err != nil {
			return err
		}
		defer api.Close()
		c.Upstream, c.Limit = api.URL(), demoLimit
		if c.Log == "auto" {
			c.Log = "text"
		}
	}
	cfg, sum, err := c.config(std)
	if err != nil {
		return err
	}
	d, err := c.build(ctx, cfg, sum, std)
	if err != nil {
		return err
	}
	if demo {
		tellDemo(std.Out, d.gateway)
	}
	return d.run(ctx)
}

// config is the policy that the flags name, and the sum of its file, if it is one.
func (c *serveCmd) config(std *streams) (cfg *config.Config, sum string, err error) {
	quick := c.Upstream != "" || c.Limit != "" || c.Algorithm != "" || c.Per != "" || c.Store != ""
	switch {
	case c.Config != "" && quick:
		return nil, "", errors.New("-c FILE says what --upstream, --limit, --algorithm, --per and --store say: give either the file or the flags")
	case c.Config != "":
		sum, _ = sumOf(c.Config) // before it is read, so that a change meanwhile is seen; load tells what is wrong
		cfg, err = load(c.Config, std)
	case c.Upstream == "":
		return nil, "", errors.New("--limit, --algorithm and --per need an API to protect: add --upstream URL")
	case c.Limit == "":
		return nil, "", errors.New("--upstream needs a limit: add --limit 100/min")
	default:
		cfg, err = config.Quick(config.QuickOptions{Upstream: c.Upstream, Limit: c.Limit, Algorithm: c.Algorithm, Per: c.Per, Store: c.Store})
	}
	if err != nil {
		return nil, "", err
	}
	return cfg, sum, c.adjust(cfg)
}

// adjust puts what flags say over what the policy does.
func (c *serveCmd) adjust(cfg *config.Config) error {
	if cfg.Server.Upstream == nil {
		return fmt.Errorf("%s names no upstream: add server: {upstream: http://127.0.0.1:9000}", c.Config)
	}
	if c.Listen != "" {
		cfg.Server.Listen = c.Listen
	}
	switch c.Metrics {
	case "":
	case "off":
		cfg.Server.Metrics = ""
	default:
		cfg.Server.Metrics = c.Metrics
	}
	return nil
}

// A daemon is a gateway with all that it is made of.
type daemon struct {
	gateway   *gateway.Gateway
	counts    *backend
	reloader  *reloader // knows what is in force
	operators *operators
	access    *gateway.LogBuffer
	log       *slog.Logger
}

// build wires a gateway from its parts.
func (c *serveCmd) build(ctx context.Context, cfg *config.Config, sum string, std *streams) (d *daemon, err error) {
	d = &daemon{log: slog.New(c.logHandler(std.Err)), access: gateway.NewLogBuffer(std.Out)}
	counts, err := openBackend(cfg, d.log)
	if err != nil {
		return nil, err
	}
	d.counts = counts
	defer func() {
		if err != nil {
			err = errors.Join(err, counts.close())
		}
	}()
	first, err := prepare(ctx, cfg, sum, d.counts, nil, d.log)
	if err != nil {
		return nil, err
	}
	ranked := 0
	if cfg.Server.Admin != nil {
		ranked = rankedClients
	}
	counter := telemetry.New(telemetry.Options{
		Engine: first.engine, Store: d.counts.stats, Shared: d.counts.shared, Log: d.log, Version: version(), Top: ranked,
		FailedLookups: func() uint64 { return d.reloader.inForce.Load().failedLookups() },
	})
	options := gateway.Options{
		InForce:    first.inForce(),
		Telemetry:  counter,
		Shared:     d.counts.shared,
		Failing:    func() []string { return d.reloader.inForce.Load().failing() },
		Log:        d.log,
		DrainDelay: c.DrainDelay,
	}
	if c.AccessLog {
		options.Access = c.logHandler(d.access)
	}
	if d.gateway, err = gateway.New(options); err != nil {
		first.stop()
		return nil, err
	}
	tellWarnings(d.log, cfg.Warnings, nil)
	d.reloader = newReloader(c, first, d.counts, d.gateway, counter, d.log)
	if d.operators, err = serveOperators(d.reloader, counter, d.log); err != nil {
		first.stop()
		return nil, errors.Join(err, d.gateway.Close())
	}
	return d, nil
}

// run serves until the context ends, and closes all.
func (d *daemon) run(ctx context.Context) error {
	beside, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { gateway.PaceCollector(beside) })
	running.Go(func() { d.operators.run(beside) })
	if d.reloader.inForce.Load().sum != "" {
		running.Go(func() { d.reloader.run(beside) })
	}
	err := d.gateway.Run(ctx)
	end()
	running.Wait()
	last := d.reloader.inForce.Load()
	last.stop()
	repaying, cancel := context.WithTimeout(context.Background(), repayAtEnd)
	defer cancel()
	if err := last.engine.Repay(repaying); err != nil {
		d.log.Warn("what quotas spent while the store failed is not charged to it", "error", err)
	}
	return errors.Join(err, d.counts.close(), d.access.Flush())
}

func (c *serveCmd) logHandler(w io.Writer) slog.Handler {
	if c.Log == "text" {
		return slog.NewTextHandler(w, nil)
	}
	return slog.NewJSONHandler(w, nil)
}

// load reads a policy file. All problems of the file are written, one a line.
func load(file string, std *streams) (*config.Config, error) {
	cfg, err := config.Load(file)
	return cfg, reportProblems(file, err, std)
}
