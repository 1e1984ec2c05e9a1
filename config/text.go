package config

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// WriteText writes the policy as understood, defaults included, each limit with
// its bound in words, for people. It counts the warnings and leaves them to the
// caller, who has them in Warnings.
func (c *Config) WriteText(w io.Writer) error {
	p := &page{}
	v := c.view()
	p.head(v)
	p.server(&v.Server)
	p.store(v)
	p.clients(&v.Identities.Address)
	p.section("requests and answers")
	p.line("paths", pathsText(v.Paths))
	p.line("headers", otherwise(strings.Join(v.Headers, ", "), "none"))
	cors := "none"
	if v.CORS != nil {
		cors = strings.Join(v.CORS.Origins, ", ")
	}
	p.line("cors", cors)
	p.line("time zone", v.TimeZone)
	p.section("limits, in order: all that match a request apply, all or nothing")
	for i := range v.Limits {
		p.limit(&v.Limits[i])
	}
	if len(v.Limits) == 0 {
		p.line("none", "every request goes on")
	}
	p.section("CORS preflights stand under this limit instead")
	p.limit(&v.Preflight)
	_, err := w.Write(p.Bytes())
	return err
}

// A page is the text as it grows.
type page struct{ bytes.Buffer }

const margin = 16

func (p *page) section(title string) { fmt.Fprintf(p, "\n%s\n", title) }

func (p *page) line(name, said string) {
	fmt.Fprintf(p, "  %-*s  %s\n", margin-2, name, said)
}

func (p *page) more(said string) { fmt.Fprintf(p, "  %*s  %s\n", margin-2, "", said) }

func (p *page) head(v *view) {
	said := count(int64(len(v.Limits)), "limit")
	if n := len(v.Warnings); n > 0 {
		said += ", " + count(int64(n), "warning")
	}
	if v.File != "" {
		said = v.File + ": " + said
	}
	fmt.Fprintln(p, said)
}

func (p *page) server(s *serverView) {
	p.section("server")
	scheme := "http"
	if s.TLS != nil {
		scheme = "https"
	}
	p.line("listen", fmt.Sprintf("%s (%s)", s.Listen, scheme))
	if s.TLS != nil {
		p.line("tls", fmt.Sprintf("certificate %s, key %s", s.TLS.Cert, s.TLS.Key))
	}
	p.line("metrics", s.Metrics)
	p.line("upstream", otherwise(s.Upstream, "none: the gateway cannot run this policy without one"))
	t := s.Timeouts
	p.line("timeouts", fmt.Sprintf("read header %s, idle %s, dial %s, response header %s, drain %s", t.ReadHeader, t.Idle, t.Dial, t.ResponseHeader, t.Drain))
	p.line("at most", fmt.Sprintf("header %s, body %s", formatSize(int64(s.MaxHeaderBytes)), formatSize(s.MaxBodyBytes)))
}

func (p *page) store(v *view) {
	p.section("store")
	bounds := fmt.Sprintf("at most %d keys, %s of sliding logs", v.Store.Memory.MaxKeys, formatSize(v.Store.Memory.MaxLogBytes))
	s := v.Store.Redis
	if s == nil {
		p.line("memory", bounds)
		p.line("save", otherwise(v.Store.Memory.Save, "none: counts end with the process"))
		p.line("secret", otherwise(v.SecretFile, "in memory only"))
		return
	}
	p.line("redis", s.URL)
	if s.PasswordFile != "" {
		p.line("password", "in "+s.PasswordFile)
	}
	if s.SentinelPasswordFile != "" {
		p.line("of sentinels", "password in "+s.SentinelPasswordFile)
	}
	p.line("keys", fmt.Sprintf("begin with %s; the last answers about %d are remembered", s.Prefix, s.MaxKnown))
	p.line("timeout", s.Timeout)
	p.line("while it fails", onErrorText[s.OnError])
	p.line("memory", bounds+", while it fails")
	p.line("secret", otherwise(v.SecretFile, "made once in Redis"))
}

// onErrorText is what holds while the store fails, by the word for it.
var onErrorText = map[string]string{
	"local": "local: each gateway counts by itself, with the limit divided by their number",
	"allow": "allow: requests go on, uncounted",
	"deny":  "deny: requests are refused with 503",
}

func (p *page) clients(a *addressView) {
	p.section("clients")
	if len(a.Trusted) == 0 {
		p.line("address", "the socket's; no forwarding header is believed")
	} else {
		p.line("address", fmt.Sprintf("from %s where the peer is trusted, else the socket's", a.Header))
		p.line("trusted", joined(a.Trusted))
	}
	ipv6 := fmt.Sprintf("each /%d is one client", a.IPv6Prefix)
	if o, ok := a.IPv6Outer.(outerView); ok {
		ipv6 += fmt.Sprintf("; each /%d together has %d times every limit per address", o.Prefix, o.Times)
	}
	p.line("ipv6", ipv6)
}

func pathsText(v pathsView) string {
	said := "strict: what an upstream could read otherwise is refused with 400"
	if v.Loose {
		said = "loose: what an upstream could read otherwise goes on"
	}
	if v.FoldCase {
		said += "; matched without regard to case"
	}
	if v.IgnoreTrailingSlash {
		said += "; a slash at the end makes no difference"
	}
	return said
}

func (p *page) limit(l *limitView) {
	numbers := []string{l.Limit + l.Quota}
	if l.Quota == "" && l.Limit != "unlimited" {
		numbers = append(numbers, l.Algorithm)
	}
	numbers = append(numbers, "per "+strings.Trim(l.per, "{}"))
	name := l.Name
	if len(name) > margin-2 {
		fmt.Fprintf(p, "  %s\n", name)
		name = ""
	}
	p.line(name, strings.Join(numbers, ", "))
	p.more(l.Bound)
	if l.Name == preflightName {
		return // it has no patterns, costs and secrets
	}
	which := "all requests"
	if len(l.Match) > 0 {
		which = strings.Join(l.Match, ", ")
	}
	if len(l.Except) > 0 {
		which += " except " + strings.Join(l.Except, ", ")
	}
	p.more("for " + which)
	if said := costText(l.Cost); said != "" {
		p.more(said)
	}
	if l.Stagger {
		p.more("each client's windows start at an offset of its own")
	}
	if l.Lease != nil {
		p.more(fmt.Sprintf("leases: up to %s of a full budget is taken ahead, for %s each; size: %v", l.Lease.Share, l.Lease.TTL, l.Lease.Size))
	}
	if l.OnError != "" {
		p.more("while the store fails: " + onErrorText[l.OnError])
	}
	if !l.Show && l.Mode == "enforce" && l.Limit+l.Quota != "unlimited" {
		p.more("clients are not told of it")
	}
}

// costText says what requests cost where it is not one each.
func costText(costs []costView) string {
	if len(costs) == 1 && costs[0].Units == 1 {
		return ""
	}
	var said []string
	for _, c := range costs {
		if c.Match == "" {
			said = append(said, fmt.Sprintf("%d each for all else", c.Units))
		} else {
			said = append(said, fmt.Sprintf("%d for %s", c.Units, c.Match))
		}
	}
	if len(costs) == 1 {
		return fmt.Sprintf("costs %d each", costs[0].Units)
	}
	return "costs " + strings.Join(said, ", ")
}

func otherwise(s, none string) string {
	if s == "" {
		return none
	}
	return s
}

func joined(prefixes []netip.Prefix) string {
	out := make([]string, len(prefixes))
	for i, p := range prefixes {
		out[i] = p.String()
	}
	return strings.Join(out, ", ")
}
