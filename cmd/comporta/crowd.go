package main

import (
	"fmt"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/sim"
)

// crowdCmd simulates many callers of one limit, on a virtual clock.
type crowdCmd struct {
	Limit     string `default:"100/s" placeholder:"LIMIT" help:"The limit that all share (default: 100/s)."`
	Algorithm string `default:"token_bucket" placeholder:"NAME" help:"token_bucket (the default), leaky_bucket, fixed_window, sliding_counter or sliding_log."`
	Clients   int    `default:"1000" placeholder:"N" help:"How many callers (default: 1000)."`
	Requests  int    `default:"1" placeholder:"N" help:"What each wants, one after the other (default: 1)."`
	Within    string `name:"start-within" default:"0" placeholder:"TIME" help:"Spread the beginnings over a time (default: 0, all at once)."`
	Latency   string `default:"20ms" placeholder:"TIME" help:"The time each way (default: 20ms)."`
	Jitter    string `default:"5ms" placeholder:"TIME" help:"By how much chance makes it more or less (default: 5ms)."`
	Seed      uint64 `default:"0" placeholder:"N" help:"Another seed is another chance (default: 0)."`
	SVG       string `name:"svg" placeholder:"FILE" help:"Also draw a picture; - draws it on the standard output, and nothing else."`
	JSON      bool   `name:"json" help:"Write one line of JSON instead of a table."`
}

// Help says what is simulated.
func (crowdCmd) Help() string {
	return `All clients want the same of one server that limits them together, and try again until they have it. Each kind of them meets the server by itself: those that come again every 100 ms, those that wait exactly as told, those that back off and read nothing; and ours, by the rules of package client, each in a process of its own or all in one. At last ours meet it once more with a naive client beside them.

Decisions are the real ones, with what the gateway says of them in its headers; callers and network are modelled. Nothing is sent anywhere, and the same flags give the same numbers. A run ends after a million attempts, or thirty days of its own time.`
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
	return writeReport(std, report, c.SVG, c.JSON)
}

func (c *crowdCmd) crowd() (crowd sim.Crowd, err error) {
	if crowd.Limit, err = comporta.ParseLimit(c.Limit); err != nil {
		return crowd, fmt.Errorf("--limit: %w", err)
	}
	if crowd.Limit.Algorithm, err = comporta.ParseAlgorithm(c.Algorithm); err != nil {
		return crowd, fmt.Errorf("--algorithm: %w", err)
	}
	for _, t := range []struct {
		flag, text string
		is         *time.Duration
	}{{"--start-within", c.Within, &crowd.StartWithin}, {"--latency", c.Latency, &crowd.Latency}, {"--jitter", c.Jitter, &crowd.Jitter}} {
		if *t.is, err = sim.ParseTime(t.text); err != nil {
			return crowd, fmt.Errorf("%s: %w", t.flag, err)
		}
	}
	if c.Requests < 1 {
		return crowd, fmt.Errorf("--requests: at least 1, not %d", c.Requests)
	}
	crowd.Clients, crowd.Requests, crowd.Seed = c.Clients, c.Requests, c.Seed
	return crowd, nil
}
