package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/internal/egress"
)

// egressCmd runs a gateway to the APIs of others.
type egressCmd struct {
	Config string `short:"c" required:"" placeholder:"FILE" help:"The egress file."`
	Check  bool   `help:"Print how the file is understood, and end."`
	Log    string `placeholder:"FORMAT" enum:"json,text" default:"json" help:"How logs are written: json (the default) or text."`
}

// Help says what it is for.
func (egressCmd) Help() string {
	return `Programs call it in place of an API of others, and it keeps within that API's limits for all of them: one limit that they share, one gate when the API says not to call, and retries within a budget. docs/egress.md has every word of the file.`
}

// Run serves until the context ends.
func (c *egressCmd) Run(ctx context.Context, std *streams) error {
	cfg, err := loadEgress(c.Config, std)
	if err != nil {
		return err
	}
	if c.Check {
		if err := cfg.WriteText(std.Out); err != nil {
			return err
		}
		for _, w := range cfg.Warnings {
			fmt.Fprintln(std.Err, w)
		}
		var unread []error
		for _, a := range cfg.APIs {
			_, err := egress.Headers(a)
			unread = append(unread, err)
		}
		return errors.Join(unread...)
	}
	log := slog.New((&serveCmd{Log: c.Log}).logHandler(std.Err))
	counts, err := openBackend(cfg.Store, log)
	if err != nil {
		return err
	}
	limits, err := outboundLimits(cfg, counts, log)
	if err != nil {
		return errors.Join(err, counts.close())
	}
	gateway, err := egress.New(egress.Options{Config: cfg, Limits: limits, Log: log})
	if err != nil {
		return errors.Join(err, counts.close())
	}
	tellWarnings(log, cfg.Warnings, nil)
	return errors.Join(gateway.Run(ctx), counts.close())
}

func outboundLimits(cfg *config.Egress, counts *backend, log *slog.Logger) (map[string]client.Outbound, error) {
	limits := map[string]client.Outbound{}
	for _, a := range cfg.APIs {
		if a.Rule == nil {
			continue
		}
		limit, err := egress.NewLimit(a.Rule, counts.store, counts.local, cfg.Store.Policy.OnError, log.With("api", a.Name))
		if err != nil {
			return nil, err
		}
		limits[a.Name] = limit
	}
	return limits, nil
}

// loadEgress reads an egress file. All problems of the file are written, one a
// line.
func loadEgress(file string, std *streams) (*config.Egress, error) {
	cfg, err := config.LoadEgress(file)
	return cfg, reportProblems(file, err, std)
}

// reportProblems writes the problems of a file; other errors it makes readable.
func reportProblems(file string, err error, std *streams) error {
	var problems config.Problems
	var path *os.PathError
	switch {
	case errors.As(err, &problems):
		for _, p := range problems {
			fmt.Fprintln(std.Err, p)
		}
		return errReported
	case errors.As(err, &path):
		return fmt.Errorf("cannot read %s: %w", file, path.Err)
	}
	return err
}
