package main

import (
	"fmt"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/sim"
)

// crowdCmd simulates many callers of one limit, on a virtual clock.
type crowdCmd struct {
	Limit     string `default:"100/s" placeholder:"LIMIT" help:"The limit that all share (default: 100/s)."`
	Algorithm string `default:"token_bucket" placeholder:"NAME" help:"token_bucket (the default), leaky_bucket, fixed_window, sliding_counter or sliding_log."`
	Clients   int    `default:"1000" placeholder:"N" help:"How many callers (default: 1000)."`
	Requests  int    `default:"1" placeholder:"N" help:"What each wants, one after the other (default: 1)."`
	Latency   string `default:"15ms" placeholder:"TIME" help:"The time each way (default: 15ms)."`
	Jitter    string `default:"10ms" placeholder:"TIME" help:"What chance adds to it at most (default: 10ms)."`
	Seed      uint64 `help:"Another seed is another chance."`
	SVG       string `name:"svg" placeholder:"FILE" help:"Also draw a picture; - draws it on the standard output, and nothing else."`
	JSON      bool   `name:"json" help:"Write one line of JSON instead of a table."`
}

// Help says what is simulated.
func (crowdCmd) Help() string {
	return `All callers begin together, and a refused request is tried again until it passes. Each kind of caller meets the same server by itself; at last ours have a naive client beside them. Decisions are the real ones, and ours run the rules of package client; callers and network are modelled. Nothing is sent anywhere, and the same flags give the same numbers.`
}

// Run carries out the command.
func (c *crowdCmd) Run(std *streams) error {
	crowd, err := c.crowd()
	if err != nil {
		return err
	}
	report, err := crowd.Play()
	if err != nil {
		return err
	}
	if c.SVG == "-" {
		return report.WriteSVG(std.Out)
	}
	if c.SVG != "" {
		if err := writeFile(c.SVG, report.WriteSVG); err != nil {
			return err
		}
	}
	if c.JSON {
		return report.WriteJSON(std.Out)
	}
	return report.WriteText(std.Out, screenOf(std.Out))
}

func (c *crowdCmd) crowd() (crowd sim.Crowd, err error) {
	if crowd.Limit, err = comporta.ParseLimit(c.Limit); err != nil {
		return crowd, fmt.Errorf("--limit: %w", err)
	}
	if crowd.Limit.Algorithm, err = comporta.ParseAlgorithm(c.Algorithm); err != nil {
		return crowd, fmt.Errorf("--algorithm: %w", err)
	}
	if crowd.Latency, err = sim.ParseTime(c.Latency); err != nil {
		return crowd, fmt.Errorf("--latency: %w", err)
	}
	if crowd.Jitter, err = sim.ParseTime(c.Jitter); err != nil {
		return crowd, fmt.Errorf("--jitter: %w", err)
	}
	crowd.Clients, crowd.Requests, crowd.Seed = c.Clients, c.Requests, c.Seed
	return crowd, nil
}
