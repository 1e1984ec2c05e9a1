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
// from those that the gateway goes by: X_API_Key and X-API-Key are one to them, and
// to a few X.API.Key, too.
func (s *reign) dropDoubles(h http.Header) {
	for name := range h {
		if strings.IndexFunc(name, isOdd) < 0 {
			continue
		}
		plain := http.CanonicalHeaderKey(strings.Map(hyphen, name))
		if strings.HasPrefix(plain, "X-Forwarded-") || slices.Contains(claims[:], plain) || slices.Contains(s.headers, plain) {
			delete(h, name)
		}
	}
}

// isOdd says whether a character of a field's name is neither letter, digit nor hyphen.
func isOdd(c rune) bool { return hyphen(c) != c }

// hyphen is what stands for a character in a field's plain name.
func hyphen(c rune) rune {
	if c == '-' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' {
		return c
	}
	return '-'
}

// headersOf are the headers that clients are told apart by, those by which the
// upstream is told of them, and those that say how bodies are read and answers come.
func headersOf(p *policy.Policy, address *identity.Address) []string {
	names := []string{"Forwarded", address.HeaderName(), "Comporta-Mark", "Comporta-Demoted",
		"Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Accept-Encoding"}
	if p.Marks != nil && p.Marks.Header != "" {
		names = append(names, p.Marks.Header)
	}
	p.EachSource(func(s identity.Source) {
		switch s := s.(type) {
		case identity.Header:
			names = append(names, s.Name())
		case *identity.ProxyHeader:
			names = append(names, s.Names()...)
		case interface{ HeaderName() string }: // of API keys and tokens
			names = append(names, s.HeaderName())
		}
	})
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
	standard := s.address.HeaderName() == "Forwarded" // then nobody has looked at the other one
	if before := in["X-Forwarded-For"]; trusted && !standard && len(before) > 0 {
		chain = strings.TrimSuffix(strings.Join(before, ", ")+", "+chain, ", ")
	}
	host, proto := pr.In.Host, "http"
	if pr.In.TLS != nil {
		proto = "https"
	}
	if standard && peer.IsValid() {
		own := forwardedElement(peer, host, proto)
		if before := in["Forwarded"]; trusted && len(before) > 0 {
			own = strings.Join(before, ", ") + ", " + own
		}
		out["Forwarded"] = []string{own}
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

// forwardedElement says in the words of RFC 7239 who asked, for which host and by
// which scheme.
func forwardedElement(peer netip.Addr, host, proto string) string {
	node := peer.String()
	if peer.Is6() {
		node = `"[` + node + `]"`
	}
	return "for=" + node + `;host="` + host + `";proto=` + proto // isHost leaves no quotes in it
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
