package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/comporta/comporta/internal/doctor"
	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/redisstore/rueidis"
)

// doctorCmd examines the Redis that is to keep counts.
type doctorCmd struct {
	Store  string `placeholder:"URL" help:"Its address, like redis://127.0.0.1:6379."`
	Config string `short:"c" placeholder:"FILE" help:"Instead: the policy file that names it, with its prefix, timeout and passwords."`
	JSON   bool   `name:"json" help:"Print the findings as JSON."`
}

// Run prints what was found, and fails where something breaks limits.
func (c *doctorCmd) Run(ctx context.Context, std *streams) error {
	o, err := c.options(std)
	if err != nil {
		return err
	}
	client, err := rueidis.Open(o.Address, rueidis.Options{Silence: longSilence})
	if err != nil {
		return err
	}
	defer client.Close()
	o.Client = client
	o.Sentinel = func(server string) (redisstore.Client, error) {
		a := *o.Address
		a.Kind, a.Servers, a.Master, a.DB = redisstore.Single, []string{server}, "", 0
		a.Username, a.Password = a.SentinelUsername, a.SentinelPassword
		return rueidis.Open(&a, rueidis.Options{Silence: longSilence})
	}
	findings := doctor.Examine(ctx, o)
	if ctx.Err() != nil {
		return errors.New("the examination was broken off")
	}
	write := writeFindings
	if c.JSON {
		write = writeFindingsJSON
	}
	if err := write(std.Out, o.Address, findings); err != nil {
		return err
	}
	if count(findings, doctor.Fail) > 0 {
		return errReported
	}
	return nil
}

// longSilence lets the examination ask what takes a server long.
const longSilence = 5 * time.Second

func (c *doctorCmd) options(std *streams) (o doctor.Options, err error) {
	switch {
	case (c.Store == "") == (c.Config == ""):
		return o, errors.New("doctor examines one store: give --store URL, or -c FILE")
	case c.Store != "":
		o = doctor.Options{Prefix: "comporta", Timeout: 50 * time.Millisecond}
		o.Address, err = redisstore.ParseAddress(c.Store)
		return o, err
	}
	cfg, err := load(c.Config, std)
	if err != nil {
		return o, err
	}
	s := cfg.Store.Redis
	if s == nil {
		return o, fmt.Errorf("%s names no redis: its counts are in the gateway's memory", c.Config)
	}
	return doctor.Options{Address: s.Address, Prefix: s.Prefix, Timeout: s.Timeout}, cfg.LoadPasswords()
}

// writeFindings writes them for people, those of one server together.
func writeFindings(w io.Writer, _ *redisstore.Address, findings []doctor.Finding) error {
	server := ""
	for _, f := range findings {
		if f.Server != server {
			server = f.Server
			if _, err := fmt.Fprintf(w, "%s\n", otherwise(server, "all servers")); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(w, "%-4v  %-11s  %s\n", f.Level, f.Check, f.Text); err != nil {
			return err
		}
		if f.Do == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%17s  → %s\n", "", f.Do); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d ok, %d to look at, %d that break limits\n", count(findings, doctor.OK), count(findings, doctor.Warn), count(findings, doctor.Fail))
	return err
}

func writeFindingsJSON(w io.Writer, a *redisstore.Address, findings []doctor.Finding) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Address  string           `json:"address"`
		OK       int              `json:"ok"`
		Warn     int              `json:"warn"`
		Fail     int              `json:"fail"`
		Findings []doctor.Finding `json:"findings"`
	}{a.String(), count(findings, doctor.OK), count(findings, doctor.Warn), count(findings, doctor.Fail), findings})
}

func count(findings []doctor.Finding, level doctor.Level) (n int) {
	for _, f := range findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

func otherwise(s, none string) string {
	if s == "" {
		return none
	}
	return s
}
