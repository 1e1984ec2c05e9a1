package client

import "net/http"

// A Transport carries requests as a well-behaved caller does. It is safe for
// concurrent use, and its cost is small beside a request's: see docs/clients.md.
type Transport struct{ *Caller }

// New wraps a transport.
func New(o Options) *Transport { panic("todo") }

// RoundTrip sends a request, waiting before it and sending it again where the
// server's limits ask for it; see package client. It never changes the request.
// Where nothing was sent the error is a *RateLimitError; where the last answer
// was a refusal it is returned with its body unread, and GaveUp says why.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) { panic("todo") }
