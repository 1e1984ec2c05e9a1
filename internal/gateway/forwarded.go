package gateway

import (
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strings"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/internal/telemetry"
	"github.com/comporta/comporta/policy"
)

// claims are the fields by which proxies tell upstreams who asks, and for what:
// some upstreams take the path from the last two, which no limit has matched.
// From a peer that is not trusted they are not passed on, nor is any other of
// X-Forwarded; httputil.ReverseProxy takes away Forwarded itself.
var claims = [...]string{"X-Real-Ip", "X-Original-Url", "X-Rewrite-Url"}

// dropClaims takes away what only a trusted peer may say.
func (s *reign) dropClaims(h http.Header) {
	for _, name := range claims {
		delete(h, name)
	}
	delete(h, s.address.HeaderName())
	for name := range h {
		if strings.HasPrefix(name, "X-Forwarded-") {
			delete(h, name)
		}
	}
}

// dropDoubles takes away fields that some upstreams (CGI, WSGI, PHP) cannot tell
// from those that the gateway goes by: X_API_Key and X-API-Key are one to them.
func (s *reign) dropDoubles(h http.Header) {
	for name := range h {
		if strings.IndexByte(name, '_') < 0 {
			continue
		}
		plain := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
		if strings.HasPrefix(plain, "X-Forwarded-") || slices.Contains(claims[:], plain) || slices.Contains(s.headers, plain) {
			delete(h, name)
		}
	}
}

// headersOf are the headers that a policy tells clients apart by.
func headersOf(limits []*policy.Limit, address *identity.Address) []string {
	names := []string{"Forwarded", address.HeaderName()}
	for _, l := range limits {
		if h, ok := l.Per.(identity.Header); ok {
			names = append(names, h.Name())
		}
	}
	return names
}

// forward says on an outgoing request who asked, under which host, and how. A
// trusted peer's own words stay: the chain of addresses goes on, the host and the
// scheme that the first proxy saw are kept. Anybody else's are dropped.
func (s *reign) forward(pr *httputil.ProxyRequest) {
	in, out := pr.In.Header, pr.Out.Header
	peer := peerOf(pr.In)
	trusted := s.address.Trusts(peer)
	if !trusted {
		s.dropClaims(out)
	}
	s.dropDoubles(out)
	chain := ""
	if peer.IsValid() {
		chain = peer.String()
	}
	if before := in["X-Forwarded-For"]; trusted && len(before) > 0 {
		chain = strings.TrimSuffix(strings.Join(before, ", ")+", "+chain, ", ")
	}
	host, proto := pr.In.Host, "http"
	if pr.In.TLS != nil {
		proto = "https"
	}
	if trusted {
		host = first(in["X-Forwarded-Host"], host)
		proto = first(in["X-Forwarded-Proto"], proto)
	}
	lines := []string{chain, host, proto} // one piece of memory for the three
	if chain != "" {
		out["X-Forwarded-For"] = lines[0:1:1]
	}
	out["X-Forwarded-Host"] = lines[1:2:2]
	out["X-Forwarded-Proto"] = lines[2:3:3]
}

func first(values []string, otherwise string) string {
	if len(values) == 0 || values[0] == "" {
		return otherwise
	}
	return values[0]
}

// watchProxies warns once when a private address that is not trusted sends the
// forwarding header: most likely a proxy, whose clients then share one budget.
func (s *reign) watchProxies(r *http.Request) {
	name := s.address.HeaderName()
	if len(r.Header[name]) == 0 || s.of.proxyTold.Load() {
		return
	}
	if peer := peerOf(r); isPrivate(peer) && !s.address.Trusts(peer) {
		s.of.proxyTold.Store(true)
		s.of.o.Telemetry.Warn(telemetry.UntrustedProxy, "", "a private address that is not trusted sends "+name+
			": if it is your proxy, name it in identities.address.trusted_proxies, or all its clients are counted as one")
	}
}

func isPrivate(a netip.Addr) bool { return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() }

// dropOddUpgrades lets a request switch protocols to WebSocket only. Any other
// protocol, h2c above all, would be a tunnel in which further requests pass by
// the limits.
func dropOddUpgrades(h http.Header) {
	if up := h["Upgrade"]; len(up) > 0 && !(len(up) == 1 && strings.EqualFold(up[0], "websocket")) {
		delete(h, "Upgrade")
		delete(h, "Connection")
		delete(h, "Http2-Settings")
	}
}
