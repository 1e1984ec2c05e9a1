package main

import (
	"context"
	"fmt"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/comporta/comporta/internal/admin"
)

// showCmd shows one client of a running gateway under all limits.
type showCmd struct {
	Identity string `arg:"" help:"The client: api_key:ID, user:NAME, address:ADDRESS, header:NAME=VALUE, path:NAME=VALUE, claimed:FIELD=VALUE or everyone."`
	Plan     string `placeholder:"NAME" help:"Its plan, where that comes with its credential and was not seen lately."`
	operatorFlags
}

// Run prints how the client stands. Nothing is spent.
func (c *showCmd) Run(ctx context.Context, std *streams) error {
	o, err := c.open(std)
	if err != nil {
		return err
	}
	path := "/v1/identities/" + url.PathEscape(c.Identity)
	if c.Plan != "" {
		path += "?plan=" + url.QueryEscape(c.Plan)
	}
	var client admin.Client
	if printed, err := o.ask(ctx, "GET", path, nil, &client); printed || err != nil {
		return err
	}
	fmt.Fprintf(std.Out, "%s at %s", printable(client.Who), client.At.Format(time.DateTime+" MST"))
	if client.Identity != client.Who {
		fmt.Fprintf(std.Out, ", stored as %s", printable(client.Identity))
	}
	fmt.Fprint(std.Out, "\n\n")
	w := tabwriter.NewWriter(std.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LIMIT\tNUMBERS\tFROM\tUSED\tLEFT\tNOW")
	for i := range client.Limits {
		l := &client.Limits[i]
		used, left := grouped(l.Used)+" of "+grouped(l.Full), grouped(l.Remaining)
		if l.Unlimited {
			used, left = "-", "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", l.Name, l.Numbers, printable(l.From), used, left, standing(l))
	}
	return w.Flush()
}

// standing is how a client stands under a limit, in words.
func standing(l *admin.Limit) string {
	now := "passes"
	switch {
	case l.Unlimited:
		return "unlimited"
	case !l.Passes && l.Blocked:
		now = "BLOCKED"
	case !l.Passes:
		now = "DENIED"
	}
	if !l.Passes {
		if l.RetryAfter == nil {
			now += " for good"
		} else {
			now += ", retry in " + inWords(*l.RetryAfter)
		}
		if !l.Enforced {
			now += " (not enforced)"
		}
	}
	if l.FullAfter > 0 {
		now += ", full in " + inWords(l.FullAfter)
	}
	return now
}

// topCmd shows the clients of a running gateway with the most use or denials.
type topCmd struct {
	By    string `enum:"use,denied" default:"use" placeholder:"WHAT" help:"use (the default) or denied."`
	Limit string `placeholder:"NAME" help:"Under this limit (default: over all, by requests)."`
	N     int    `short:"n" default:"20" placeholder:"N" help:"How many (default: 20)."`
	operatorFlags
}

// Run prints the ranking of the last minutes.
func (c *topCmd) Run(ctx context.Context, std *streams) error {
	o, err := c.open(std)
	if err != nil {
		return err
	}
	var top admin.Top
	query := url.Values{"by": {c.By}, "limit": {c.Limit}}
	if printed, err := o.ask(ctx, "GET", "/v1/top?"+query.Encode(), nil, &top); printed || err != nil {
		return err
	}
	fmt.Fprintf(std.Out, "%s, since %s", ranked(&top), top.Since.Format(time.DateTime+" MST"))
	if top.Missed > 0 {
		fmt.Fprintf(std.Out, " (of a sample: %s requests came while another was being counted)", grouped(top.Missed))
	}
	fmt.Fprint(std.Out, "\n\n")
	w := tabwriter.NewWriter(std.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "#\tCLIENT\t%s\tSHARE\n", map[string]string{"units": "UNITS", "requests": "REQUESTS"}[top.Unit])
	for i, client := range top.Clients[:min(max(0, c.N), len(top.Clients))] {
		count := grouped(client.AtMost)
		if client.AtLeast < client.AtMost {
			count = grouped(client.AtLeast) + " to " + count
		}
		share := "-" // a request may be several clients': its address's, its key's
		if top.Limit != "" {
			share = fmt.Sprintf("%.1f %%", 100*float64(client.AtLeast)/float64(max(1, top.Seen)))
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", i+1, printable(client.Who), count, share)
	}
	return w.Flush()
}

// ranked says what clients are ranked by.
func ranked(top *admin.Top) string {
	switch {
	case top.Limit == "" && top.By == "denied":
		return "Refused requests"
	case top.Limit == "":
		return "Requests that went on"
	case top.By == "denied":
		return grouped(top.Seen) + " requests denied by " + top.Limit
	}
	return grouped(top.Seen) + " units used of " + top.Limit
}
