package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/internal/gateway"
	"github.com/comporta/comporta/internal/telemetry"
	"github.com/comporta/comporta/policy"
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
	cfg, err := c.config(std)
	if err != nil {
		return err
	}
	g, stop, err := c.build(ctx, cfg, std)
	if err != nil {
		return err
	}
	if demo {
		tellDemo(std.Out, g)
	}
	return errors.Join(g.Run(ctx), stop())
}

// config is the policy that the flags name.
func (c *serveCmd) config(std *streams) (*config.Config, error) {
	quick := c.Upstream != "" || c.Limit != "" || c.Algorithm != "" || c.Per != "" || c.Store != ""
	var cfg *config.Config
	var err error
	switch {
	case c.Config != "" && quick:
		return nil, errors.New("-c FILE says what --upstream, --limit, --algorithm, --per and --store say: give either the file or the flags")
	case c.Config != "":
		cfg, err = load(c.Config, std)
	case c.Upstream == "":
		return nil, errors.New("--limit, --algorithm and --per need an API to protect: add --upstream URL")
	case c.Limit == "":
		return nil, errors.New("--upstream needs a limit: add --limit 100/min")
	default:
		cfg, err = config.Quick(config.QuickOptions{Upstream: c.Upstream, Limit: c.Limit, Algorithm: c.Algorithm, Per: c.Per, Store: c.Store})
	}
	if err != nil {
		return nil, err
	}
	if cfg.Server.Upstream == nil {
		return nil, fmt.Errorf("%s names no upstream: add server: {upstream: http://127.0.0.1:9000}", c.Config)
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
	return cfg, nil
}

// build wires a gateway from its parts; stop ends what does not end with it.
func (c *serveCmd) build(ctx context.Context, cfg *config.Config, std *streams) (g *gateway.Gateway, stop func() error, err error) {
	log := slog.New(c.logHandler(std.Err))
	counts, err := openBackend(ctx, cfg, log)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, counts.close())
		}
	}()
	engine, err := policy.NewEngine(cfg.Policy, counts.store, policy.Options{Local: counts.local})
	if err != nil {
		return nil, nil, err
	}
	options := gateway.Options{
		InForce: gateway.InForce{Server: cfg.Server, Engine: engine},
		Telemetry: telemetry.New(telemetry.Options{
			Engine: engine, Store: counts.stats, Shared: counts.shared, Log: log, Version: version(),
		}),
		Shared:     counts.shared,
		Log:        log,
		DrainDelay: c.DrainDelay,
	}
	access := gateway.NewLogBuffer(std.Out)
	if c.AccessLog {
		options.Access = c.logHandler(access)
	}
	if g, err = gateway.New(options); err != nil {
		return nil, nil, err
	}
	for _, w := range cfg.Warnings {
		log.Warn(w.Text, "code", w.Code, "hint", w.Hint, "line", w.Line)
	}
	pacing, paced := context.WithCancel(context.Background())
	var pacer sync.WaitGroup
	pacer.Go(func() { gateway.PaceCollector(pacing) })
	return g, func() error {
		paced()
		pacer.Wait()
		end, cancel := context.WithTimeout(context.Background(), repayAtEnd)
		defer cancel()
		if err := engine.Repay(end); err != nil {
			log.Warn("what quotas spent while the store failed is not charged to it", "error", err)
		}
		return errors.Join(counts.close(), access.Flush())
	}, nil
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
	var problems config.Problems
	var path *os.PathError
	switch {
	case errors.As(err, &problems):
		for _, p := range problems {
			fmt.Fprintln(std.Err, p)
		}
		return nil, errReported
	case errors.As(err, &path):
		return nil, fmt.Errorf("cannot read %s: %w", file, path.Err)
	}
	return cfg, err
}
