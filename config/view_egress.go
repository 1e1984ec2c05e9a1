package config

import (
	"fmt"
	"io"
	"strings"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/client"
)

// WriteText writes the file as understood, defaults included, for people. It
// repeats no value of a header field.
func (e *Egress) WriteText(w io.Writer) error {
	var b strings.Builder
	row := func(depth int, name, value string) {
		fmt.Fprintf(&b, "%s%-14s %s\n", strings.Repeat("  ", depth), name, value)
	}
	row(0, "listen", e.Listen)
	if e.Metrics == "" {
		row(0, "metrics", "off")
	} else {
		row(0, "metrics", e.Metrics)
	}
	if redis := e.Store.Store.Redis; redis != nil {
		row(0, "store", fmt.Sprintf("%v, shared by all instances; on error: %v", redis.Address, e.Store.Policy.OnError))
	} else {
		row(0, "store", "memory of this process")
	}
	for _, a := range e.APIs {
		fmt.Fprintf(&b, "\n%s\n", a.Name)
		row(1, "path", a.Path)
		row(1, "upstream", a.Upstream.String())
		if a.Rule == nil {
			row(1, "limit", "none of its own; what the API says is kept")
		} else {
			limit := a.Rule.Limit()
			row(1, "limit", fmt.Sprintf("%v, %v, of all programs together", limit, limit.Algorithm))
		}
		if a.Header == "" {
			row(1, "per", "everyone")
		} else {
			row(1, "per", "header:"+a.Header)
		}
		for _, h := range a.Set {
			value := "a value of the file"
			if h.File != "" {
				value = "from " + h.File
			}
			row(1, "header", h.Name+", "+value)
		}
		c := a.Client
		row(1, "attempts", fmt.Sprint(c.Attempts))
		row(1, "retry_refused", fmt.Sprint(c.RetryRefused))
		row(1, "max_wait", comporta.FormatDuration(c.MaxWait))
		row(1, "backoff", fmt.Sprintf("from %s to %s, jitter %s", comporta.FormatDuration(c.Backoff.Base), comporta.FormatDuration(c.Backoff.Cap), jitters[c.Backoff.Jitter]))
		if c.Budget.Percent < 0 {
			row(1, "budget", "off")
		} else {
			row(1, "budget", fmt.Sprintf("%g%%", c.Budget.Percent))
		}
		row(1, "pace", paces[c.Pace])
		if c.Adaptive == 0 {
			row(1, "adaptive", "off")
		} else {
			row(1, "adaptive", fmt.Sprintf("%g", c.Adaptive))
		}
		row(1, "max_waiters", fmt.Sprint(c.MaxWaiters))
		row(1, "max_body", formatSize(a.MaxBody))
		row(1, "timeout", comporta.FormatDuration(a.Timeout))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// The words for what package client has as numbers.
var (
	paces   = [...]string{client.Gentle: "gentle", client.Strict: "strict", client.Off: "off"}
	jitters = [...]string{client.Full: "full", client.Equal: "equal", client.Decorrelated: "decorrelated", client.Additive: "additive", client.NoJitter: "none"}
)
