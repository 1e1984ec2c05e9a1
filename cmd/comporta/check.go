package main

import (
	"context"
	"fmt"
)

// checkCmd tells what a policy file means, or all that is wrong with it.
type checkCmd struct {
	File string `arg:"" help:"The policy file."`
	JSON bool   `name:"json" help:"Print it as JSON."`
}

// Run prints the policy on the standard output, defaults included, and then the
// warnings on the standard error: on a terminal they stand last, where they are
// seen. Of other files it reads those of keys, where they are there; it opens no port
// and asks nobody.
func (c *checkCmd) Run(ctx context.Context, std *streams) error {
	cfg, err := load(c.File, std)
	if err != nil {
		return err
	}
	if err := cfg.CheckFiles(ctx); err != nil {
		fmt.Fprintln(std.Err, err)
		return errReported
	}
	write := cfg.WriteText
	if c.JSON {
		write = cfg.WriteJSON
	}
	if err := write(std.Out); err != nil {
		return err
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintln(std.Err, w)
	}
	return nil
}
