package httplimit

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// errOpaque is of a target such as http:admin, whose path is nowhere to be seen.
var errOpaque = errors.New("the request target has no path")

// clean is the request with its path normalised, and that path decoded, as
// limits match it. What was matched is what goes on. The request that came in is
// left alone, and so, in both, is RequestURI, which is what the client sent.
func clean(engine *policy.Engine, r *http.Request) (decoded string, cleaned *http.Request, err error) {
	switch {
	case r.URL.Opaque != "":
		return "", r, errOpaque
	case r.Method == http.MethodConnect && r.URL.Path == "":
		return "", r, nil
	}
	if r.URL.RawPath == "" && policy.IsPlain(r.URL.Path) {
		return r.URL.Path, r, nil // nearly always
	}
	escaped := r.URL.EscapedPath()
	forward, decoded, err := engine.CleanPath(escaped)
	if err != nil || forward == escaped {
		return decoded, r, err
	}
	u, copied := *r.URL, *r
	if u.Path, err = url.PathUnescape(forward); err != nil {
		return "", r, err
	}
	u.RawPath = "" // as url.Parse: only where escaping Path would not give it
	if u.EscapedPath() != forward {
		u.RawPath = forward
	}
	copied.URL = &u
	return decoded, &copied, nil
}

// look makes to the request as limits look at it, field by field where it lies. It
// allocates nothing.
func look(to *identity.Request, r *http.Request, path string) {
	*to = identity.Request{}
	to.Method, to.Host, to.Path, to.Query = r.Method, identity.Host(r.Host), path, r.URL.RawQuery
	to.Header, to.Peer = r.Header, peer(r.RemoteAddr)
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
