package httplimit

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// clean is the request with its path normalised, and that path decoded, as
// limits match it. What was matched is what goes on; the request that came in is
// left alone, RequestURI, which is what the client sent, in both.
func clean(paths policy.Paths, r *http.Request) (decoded string, cleaned *http.Request, err error) {
	if !strings.HasPrefix(r.URL.Path, "/") { // CONNECT, OPTIONS *
		return r.URL.Path, r, nil
	}
	escaped := r.URL.EscapedPath()
	forward, decoded, err := paths.Clean(escaped)
	if err != nil || forward == escaped {
		return decoded, r, err
	}
	u, copied := *r.URL, *r
	u.Path, u.RawPath = decoded, forward
	copied.URL = &u
	return decoded, &copied, nil
}

// fill is the request as limits look at it. It allocates nothing.
func fill(q *identity.Request, r *http.Request, path string) {
	q.Method = r.Method
	q.Host = host(r.Host)
	q.Path = path
	q.Header = r.Header
	q.Peer = peer(r.RemoteAddr)
}

// host is a Host field without its port.
func host(s string) string {
	colon := strings.LastIndexByte(s, ':')
	if colon < 0 || strings.IndexByte(s[colon:], ']') >= 0 {
		return s
	}
	return s[:colon]
}

// peer is the address in a RemoteAddr, with a port as net/http writes it or
// without as some middleware does. A Unix socket has none. What is neither is
// the unspecified address, which is nobody's: it must not pass for a Unix
// socket, whose forwarding headers are believed.
func peer(remote string) netip.Addr {
	if remote == "" || remote[0] == '@' || remote[0] == '/' {
		return netip.Addr{}
	}
	addr, ok := identity.ParseAddr(remote)
	if !ok {
		return netip.IPv6Unspecified()
	}
	return addr
}
