package identity

import (
	"context"
	"net/netip"
)

// A Request is what limits may look at, whatever carried it: HTTP, gRPC, an
// Envoy descriptor, a log line. So no carrier counts differently.
//
// A Request is used by one goroutine at a time. What was found in it is kept in
// it: to use the memory for another request, assign a new Request as a whole.
type Request struct {
	// Method is the request's method, in capitals as it came.
	Method string
	// Host is the host that was asked for, without port.
	Host string
	// Path is the decoded, normalised path: what patterns match and what is forwarded.
	Path string
	// Query is the raw query, without its question mark.
	Query string
	// Header holds the header lines under their canonical names; an http.Header fits.
	Header map[string][]string
	// Peer is the address at the other end of the socket: unmapped, without zone.
	// The zero Addr is a peer that has none, such as a Unix socket.
	Peer netip.Addr
	// PathValues are the values of the wildcards of the pattern that matched, by
	// name. What matches patterns sets it; nil where none matched.
	PathValues func(name string) string
	// Body is the beginning of the request's body: at most that many bytes, and
	// whether they are all of it. It may be called again, with more; what it read is
	// handed on as it came. Nil where there is no body. Its error is a *[RequestError]
	// where the client is at fault.
	Body func(ctx context.Context, most int) (data []byte, whole bool, err error)

	// client is the address that clientOf found: a request is walked once.
	client   netip.Addr
	clientOf *Address
}

// A Source says who is asking: one way of telling clients apart. It is safe for
// concurrent use and its answer hangs on nothing but the request.
type Source interface {
	// Identity is the client as it is to be counted and stored, and whether the
	// request shows one. Its text begins with the kind of identity, so that one kind
	// is never taken for another, and holds nothing secret: what a client sent is
	// there only as a keyed hash.
	Identity(r *Request) (id string, ok bool)
	// String is the source as a policy file writes it: address, {header: X-Tenant}.
	String() string
}
