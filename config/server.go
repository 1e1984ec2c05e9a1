package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	defaultKeys     = 1_000_000
	maxKeys         = 1_000_000_000
	defaultLogBytes = 256 << 20
)

func defaultServer() Server {
	return Server{
		Listen: "127.0.0.1:8080", Metrics: "127.0.0.1:9901",
		Timeouts: Timeouts{
			ReadHeader: 10 * time.Second, Idle: 2 * time.Minute,
			Dial: 5 * time.Second, ResponseHeader: time.Minute, Drain: 30 * time.Second,
		},
		MaxHeaderBytes: 64 << 10, MaxBodyBytes: 100 << 20,
	}
}

func (r *reader) server(n *node) {
	s := &r.config.Server
	words := r.mapping(n, "server", serverWords)
	if e, ok := words["listen"]; ok {
		s.Listen = r.hostPort(e.value, "listen", s.Listen)
	}
	if e, ok := words["metrics"]; ok {
		s.Metrics = r.metrics(e.value, s.Metrics)
	}
	if s.Listen == s.Metrics && !strings.HasSuffix(s.Listen, ":0") {
		at := n
		for _, name := range [...]string{"listen", "metrics"} {
			if e, ok := words[name]; ok {
				at = e.value
			}
		}
		r.fault(at, "listen and metrics are the same address", "give metrics a port of its own, one that clients cannot reach")
	}
	if e, ok := words["upstream"]; ok {
		s.Upstream = r.upstream(e.value)
	}
	if e, ok := words["proxy_protocol"]; ok {
		s.ProxyProtocol = r.trusted(e.value, "proxy_protocol")
	}
	if e, ok := words["admin"]; ok {
		s.Admin = r.admin(e.value)
	}
	if e, ok := words["tls"]; ok {
		s.TLS = r.tls(e.value)
	}
	if e, ok := words["timeouts"]; ok {
		r.timeouts(e.value)
	}
	if e, ok := words["max_header_bytes"]; ok {
		v, _ := r.size(e.value, "max_header_bytes", 16<<20)
		s.MaxHeaderBytes = int(v)
	}
	if e, ok := words["max_body_bytes"]; ok {
		s.MaxBodyBytes, _ = r.size(e.value, "max_body_bytes", maxSize)
	}
}

// metrics reads where metrics are told; "" is nowhere.
func (r *reader) metrics(n *node, otherwise string) string {
	if n.kind == text && n.text == "off" {
		return ""
	}
	at := r.hostPort(n, "metrics", otherwise)
	r.warnMetrics(n, at)
	return at
}

// hostPort reads an address to listen on; port 0 is any free one.
func (r *reader) hostPort(n *node, what, otherwise string) string {
	said, ok := r.text(n, what, "127.0.0.1:8080")
	if !ok {
		return otherwise
	}
	host, port, err := net.SplitHostPort(said)
	number, notNumber := strconv.ParseUint(port, 10, 16)
	if err != nil || notNumber != nil || strconv.FormatUint(number, 10) != port || strings.ContainsAny(host, " /@") {
		r.fault(n, fmt.Sprintf("%s: %q is no address to listen on", what, said), "write host:port, like 127.0.0.1:8080, or [::1]:8080; the port from 0 to 65535")
		return otherwise
	}
	return said
}

// warnMetrics warns where health and metrics are told to everybody.
func (r *reader) warnMetrics(n *node, listen string) {
	if everybody(listen) {
		r.warn(n, "W-METRICS-PUBLIC", "metrics are told to whoever reaches "+listen+": limits, traffic and load are there to read",
			"listen on 127.0.0.1 or a private address, or keep strangers out with a firewall")
	}
}

// everybody says whether strangers may reach an address: it is every one of the
// machine's, or a public one. What a name stands for, nobody can see.
func everybody(listen string) bool {
	host, _, _ := net.SplitHostPort(listen)
	addr, err := netip.ParseAddr(host)
	everywhere := host == "" || err == nil && addr.IsUnspecified()
	return everywhere || err == nil && addr.IsGlobalUnicast() && !addr.IsPrivate()
}

// upstream reads the URL of the API. It is never repeated: it might hold a password.
func (r *reader) upstream(n *node) *url.URL {
	said, ok := r.text(n, "upstream", "http://127.0.0.1:9000")
	if !ok {
		return nil
	}
	const example = "write it like http://127.0.0.1:9000"
	u, err := url.Parse(said)
	switch {
	case err != nil:
		r.fault(n, "upstream is not a URL", example)
	case u.Scheme != "http" && u.Scheme != "https":
		r.fault(n, "upstream does not begin with http:// or https://", example)
	case u.User != nil:
		r.fault(n, "upstream has a user or password in it", "leave it out: what clients send is passed on as it is")
	case u.Hostname() == "":
		r.fault(n, "upstream has no host", example)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		r.fault(n, "upstream has a query or fragment", "leave it out: paths and queries come from the request")
	default:
		if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
			r.fault(n, "upstream has no such port", "ports are from 1 to 65535")
			return nil
		}
		return u
	}
	return nil
}

func (r *reader) tls(n *node) *TLS {
	words := r.mapping(n, "tls", tlsWords)
	if words == nil {
		return nil
	}
	t := &TLS{}
	for _, part := range [...]struct {
		name string
		file *string
	}{{"cert", &t.Cert}, {"key", &t.Key}} {
		e, ok := words[part.name]
		if !ok {
			r.fault(n, "tls has no "+part.name, "write tls: {cert: cert.pem, key: key.pem}")
			continue
		}
		if said, ok := r.text(e.value, part.name, part.name+".pem"); ok {
			*part.file = r.beside(said)
		}
	}
	return t
}

func (r *reader) timeouts(n *node) {
	t := &r.config.Server.Timeouts
	for name, e := range r.mapping(n, "timeouts", timeoutWords) {
		d, _ := r.duration(e.value, name)
		switch name {
		case "read_header":
			t.ReadHeader = d
		case "idle":
			t.Idle = d
		case "dial":
			t.Dial = d
		case "response_header":
			t.ResponseHeader = d
		case "drain":
			t.Drain = d
		}
	}
}

func (r *reader) store(n *node) {
	words := r.mapping(n, "store", storeWords)
	if e, ok := words["memory"]; ok {
		r.memory(e.value)
	}
	if e, ok := words["redis"]; ok {
		r.config.Store.Redis = r.redis(e.value)
		r.config.Store.Save = ""
	}
}

func (r *reader) memory(n *node) {
	s := &r.config.Store
	words := r.mapping(n, "store.memory", memoryWords)
	if e, ok := words["max_keys"]; ok {
		v, _ := r.whole(e.value, "max_keys", 1, maxKeys)
		s.MaxKeys = int(v)
	}
	if e, ok := words["max_log_bytes"]; ok {
		s.MaxLogBytes, _ = r.size(e.value, "max_log_bytes", maxSize)
	}
	if e, ok := words["save"]; ok {
		if said, ok := r.text(e.value, "save", "comporta.state"); ok {
			s.Save, r.saveAt = r.beside(said), e.value
		}
	}
}
