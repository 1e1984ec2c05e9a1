package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/sim"
)

// fleetCmd simulates instances that share a limit, on a virtual clock.
type fleetCmd struct {
	Limit       string  `required:"" placeholder:"LIMIT" help:"The limit of one client, like '10000/min'."`
	Algorithm   string  `default:"token_bucket" placeholder:"NAME" help:"token_bucket (the default), fixed_window, sliding_counter or sliding_log."`
	Instances   int     `default:"10" help:"How many instances share it (default: 10)."`
	Rate        float64 `required:"" placeholder:"N" help:"Requests a second, of all clients at all instances."`
	For         string  `default:"10s" placeholder:"TIME" help:"How long they come (default: 10s)."`
	Clients     int     `default:"1" placeholder:"N" help:"Clients, few of which send most (default: 1)."`
	Uneven      bool    `help:"Give few instances most of the traffic."`
	Lease       string  `default:"auto" placeholder:"SIZE" help:"Units an instance holds ahead: auto (the default), a number, or off."`
	TTL         string  `default:"1s" placeholder:"TIME" help:"How long a leased unit may be used (default: 1s)."`
	Share       int     `default:"10" placeholder:"PERCENT" help:"How much of the limit may lie in leases (default: 10)."`
	OnError     string  `default:"local" enum:"local,deny,allow" help:"What decides while the store is away: local (the default), deny or allow."`
	Die         string  `placeholder:"N@TIME" help:"So many instances die, like 3@5s."`
	Unreachable string  `placeholder:"TIME@TIME" help:"The store cannot be reached for so long, like 2s@5s."`
	Forget      string  `placeholder:"TIME@TIME" help:"A failover forgets what was last written, like 100ms@5s."`
	Drift       int64   `placeholder:"PPM" help:"By how much monotonic clocks may run fast or slow, in parts per million."`
	Late        float64 `placeholder:"PART" help:"The part of messages, of 1, that come up to 100 ms late."`
	Seed        uint64  `help:"Another seed is another chance."`
}

// Help says what is simulated.
func (fleetCmd) Help() string {
	return `Instances decide on requests under one limit, whose count is in one store 0.25 to 0.5 ms away. Decisions are the real ones; instances, network and faults are modelled. Nothing is sent anywhere, and the same flags give the same numbers.`
}

// Run carries out the command.
func (c *fleetCmd) Run(std *streams) error {
	f, err := c.fleet()
	if err != nil {
		return err
	}
	report, err := f.Run()
	if err != nil {
		return err
	}
	return report.WriteText(std.Out)
}

func (c *fleetCmd) fleet() (f sim.Fleet, err error) {
	if f.Limit, err = comporta.ParseLimit(c.Limit); err != nil {
		return f, fmt.Errorf("--limit: %w", err)
	}
	if f.Limit.Algorithm, err = comporta.ParseAlgorithm(c.Algorithm); err != nil {
		return f, fmt.Errorf("--algorithm: %w", err)
	}
	if f.Limit.Lease, err = c.lease(); err != nil {
		return f, err
	}
	last, err := sim.ParseTime(c.For)
	if err != nil {
		return f, fmt.Errorf("--for: %w", err)
	}
	const most = 100e6
	if !(c.Rate >= 0) || c.Rate*last.Seconds() > most || c.Clients < 1 || c.Clients > most || c.Instances > 100_000 {
		return f, errors.New("--rate, --for, --clients and --instances: at most 100 million requests of as many clients, 100,000 instances, and none is below 0")
	}
	f.Instances, f.Keys, f.Uneven = c.Instances, c.Clients, c.Uneven
	f.Load = []sim.Phase{{For: last, Rate: c.Rate}}
	f.OnError = map[string]sim.OnError{"local": sim.Local, "deny": sim.Deny, "allow": sim.Allow}[c.OnError]
	f.Drift, f.Late, f.Seed = c.Drift, c.Late, c.Seed
	f.Faults, err = c.faults()
	return f, err
}

func (c *fleetCmd) lease() (*comporta.Lease, error) {
	lease := &comporta.Lease{Share: c.Share}
	switch c.Lease {
	case "off":
		return nil, nil
	case "auto":
	default:
		size, err := strconv.ParseInt(c.Lease, 10, 64)
		if err != nil || size < 1 {
			return nil, fmt.Errorf("--lease: %q is neither auto, off nor a number of units", c.Lease)
		}
		lease.Size = size
	}
	var err error
	if lease.TTL, err = sim.ParseTime(c.TTL); err != nil {
		return nil, fmt.Errorf("--ttl: %w", err)
	}
	return lease, nil
}

func (c *fleetCmd) faults() (faults []sim.Fault, err error) {
	for _, fault := range []struct {
		flag, text string
		read       func(f *sim.Fault, what string) error
	}{
		{"--die", c.Die, func(f *sim.Fault, what string) (err error) {
			f.Die, err = strconv.Atoi(what)
			return err
		}},
		{"--unreachable", c.Unreachable, func(f *sim.Fault, what string) error { return readTime(&f.Unreachable, what) }},
		{"--forget", c.Forget, func(f *sim.Fault, what string) error { return readTime(&f.Forget, what) }},
	} {
		if fault.text == "" {
			continue
		}
		what, at, _ := strings.Cut(fault.text, "@")
		var f sim.Fault
		if err := errors.Join(fault.read(&f, what), readTime(&f.At, at)); err != nil {
			return nil, fmt.Errorf("%s: write it like its example in --help: %w", fault.flag, err)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func readTime(d *time.Duration, text string) (err error) {
	*d, err = sim.ParseTime(text)
	return err
}
