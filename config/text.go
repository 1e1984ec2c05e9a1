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
	p.identities(&v.Identities, c.claims())
	p.lists(c.said.allow, c.said.deny)
	p.selfService(v.SelfService)
	p.section("requests and answers")
	p.line("paths", pathsText(v.Paths))
	p.line("headers", otherwise(strings.Join(v.Headers, ", "), "none"))
	cors := "none"
	if v.CORS != nil {
		cors = strings.Join(v.CORS.Origins, ", ")
	}
	p.line("cors", cors)
	if v.Marks != nil {
		p.line("marks", fmt.Sprintf("%s, signed with the key in %s", v.Marks.Header, v.Marks.SecretFile))
	}
	p.line("time zone", v.TimeZone)
	p.section("limits, in order: all that match a request apply, all or nothing")
	for i := range v.Limits {
		p.limit(&v.Limits[i])
	}
	if len(v.Limits) == 0 {
		p.line("none", "every request goes on")
	}
	if len(v.Overrides) > 0 {
		p.section("overrides: one client's numbers for the limits that they name; all other limits hold it as ever")
	}
	for i := range v.Overrides {
		p.override(&v.Overrides[i])
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
	if len(s.ProxyProtocol) > 0 {
		p.line("proxy protocol", "from "+joined(s.ProxyProtocol))
	}
	p.line("metrics", s.Metrics)
	p.admin(s.Admin)
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
