package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/comporta/comporta/internal/admin"
)

// resetCmd makes a client of a running gateway new.
type resetCmd struct {
	Identity string   `arg:"" help:"The client, as for show."`
	Limit    []string `placeholder:"NAME" help:"Under this limit alone; may be repeated (default: all)."`
	Why      string   `required:"" placeholder:"TEXT" help:"The reason, for the audit log."`
	operatorFlags
}

// Run resets the client.
func (c *resetCmd) Run(ctx context.Context, std *streams) error {
	o, err := c.open(std)
	if err != nil {
		return err
	}
	said := admin.Reset{Who: c.Identity, Limits: c.Limit, Why: c.Why}
	if printed, err := o.ask(ctx, "POST", "/v1/reset", said, &said); printed || err != nil {
		return err
	}
	under := "all its limits"
	if len(said.Limits) > 0 {
		under = strings.Join(said.Limits, ", ")
	}
	_, err = fmt.Fprintf(std.Out, "%s is new under %s.\n", printable(said.Who), under)
	return err
}

// grantCmd gives a client of a running gateway units back.
type grantCmd struct {
	Identity string `arg:"" help:"The client, as for show."`
	Limit    string `arg:"" help:"The limit."`
	Units    int64  `arg:"" help:"How many of the units that it used."`
	Plan     string `placeholder:"NAME" help:"Its plan, as for show."`
	Why      string `required:"" placeholder:"TEXT" help:"The reason, for the audit log."`
	operatorFlags
}

// Run gives them back.
func (c *grantCmd) Run(ctx context.Context, std *streams) error {
	o, err := c.open(std)
	if err != nil {
		return err
	}
	said := admin.Grant{Who: c.Identity, Limit: c.Limit, Units: c.Units, Plan: c.Plan, Why: c.Why}
	var now admin.Granted
	if printed, err := o.ask(ctx, "POST", "/v1/grant", said, &now); printed || err != nil {
		return err
	}
	full := ""
	if now.FullAfter > 0 {
		full = ", full in " + inWords(now.FullAfter)
	}
	_, err = fmt.Fprintf(std.Out, "%s: %s of %s units of %s remain%s.\n", printable(now.Who), grouped(now.Remaining), grouped(now.Full), now.Limit, full)
	return err
}

// overrideCmd gives clients of a running gateway numbers of their own.
type overrideCmd struct {
	List overrideListCmd `cmd:"" help:"List all overrides: the policy's and those of run time."`
	Add  overrideAddCmd  `cmd:"" help:"Give a client, or a network, numbers of its own, at once."`
	End  overrideEndCmd  `cmd:"" help:"End an override of run time."`
}

type overrideListCmd struct{ operatorFlags }

// Run prints a table.
func (c *overrideListCmd) Run(ctx context.Context, std *streams) error {
	o, err := c.open(std)
	if err != nil {
		return err
	}
	var all admin.Overrides
	if printed, err := o.ask(ctx, "GET", "/v1/overrides", nil, &all); printed || err != nil {
		return err
	}
	w := tabwriter.NewWriter(std.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tCLIENT\tLIMITS\tTHROUGH\tREASON")
	for _, o := range slices.Concat(all.Policy, all.RunTime) {
		id := o.ID
		if id == "" {
			id = fmt.Sprintf("line %d", o.Line)
		}
		through := o.Through
		if through == "" {
			through = "for good"
		}
		reason := o.Reason
		if o.By != "" {
			reason += " (" + o.By + ")"
		}
		if o.Problem != "" {
			reason = "NOT IN FORCE: " + o.Problem
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", id, printable(o.Who), numbersOf(o.Limits), through, printable(reason))
	}
	return w.Flush()
}

// numbersOf are limits' numbers in one line.
func numbersOf(limits map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		all = append(all, name+": "+limits[name])
	}
	return strings.Join(all, ", ")
}

type overrideAddCmd struct {
	Identity string            `arg:"" help:"The client, as for show, or address:NETWORK."`
	Limits   map[string]string `arg:"" help:"Its numbers, like requests='5000/min burst 500'."`
	Through  string            `placeholder:"DAY" help:"The last day on which it holds, like 2027-01-31 (default: for good)."`
	Why      string            `required:"" placeholder:"TEXT" help:"The reason, for the audit log and for whoever reads the policy."`
	operatorFlags
}

// Run begins it, and prints what to commit.
func (c *overrideAddCmd) Run(ctx context.Context, std *streams) error {
	o, err := c.open(std)
	if err != nil {
		return err
	}
	var added admin.Override
	said := admin.Wanted{Who: c.Identity, Limits: c.Limits, Through: c.Through, Why: c.Why}
	if printed, err := o.ask(ctx, "POST", "/v1/overrides", said, &added); printed || err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.Out, "In force as %s, until it is ended or its last day is over.\nTo have it in the policy, commit this into overrides, and end it here:\n\n%s", added.ID, added.YAML)
	return err
}

type overrideEndCmd struct {
	ID  string `arg:"" help:"The override, as list names it."`
	Why string `required:"" placeholder:"TEXT" help:"The reason, for the audit log."`
	operatorFlags
}

// Run ends it.
func (c *overrideEndCmd) Run(ctx context.Context, std *streams) error {
	o, err := c.open(std)
	if err != nil {
		return err
	}
	var ended admin.Override
	path := "/v1/overrides/" + url.PathEscape(c.ID) + "?why=" + url.QueryEscape(c.Why)
	if printed, err := o.ask(ctx, "DELETE", path, nil, &ended); printed || err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.Out, "The override of %s has ended (%s).\n", printable(ended.Who), numbersOf(ended.Limits))
	return err
}
