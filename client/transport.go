package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
)

// A Transport carries requests as a well-behaved caller does. It is safe for
// concurrent use, and its cost is small beside a request's: see docs/clients.md.
type Transport struct{ *Caller }

// New wraps a transport.
func New(o Options) *Transport {
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	return &Transport{NewCaller(o)}
}

// RoundTrip sends a request, waiting before it and sending it again where the
// server's limits ask for it; see package client. It never changes the request.
// Where nothing was sent the error is a *RateLimitError; where the last answer
// was a refusal it is returned with its body unread, and GaveUp says why.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &exchange{transport: t, req: req, body: req.Body}
	defer x.closeBody()
	if req.URL == nil {
		return nil, errors.New("client: the request has no URL")
	}
	x.call = t.callOf(req)
	err := t.Do(req.Context(), &x.call, x.attempt)
	return x.outcome(err)
}

// CloseIdleConnections is for http.Client.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.options.Transport.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) callOf(req *http.Request) Call {
	call := Call{Target: hostOf(req), Cost: 1}
	call.Identity = call.Target
	if t.options.Account != nil {
		call.Identity, call.Cost = t.options.Account(req)
	}
	if t.options.Partition != nil {
		call.Partition = t.options.Partition(req)
	}
	call.Repeat = repeatable(req) && replayable(req)
	call.Resend = call.Repeat || t.options.RetryRefused && replayable(req)
	return call
}

// An exchange is a request with the answers to its attempts.
type exchange struct {
	transport *Transport
	req       *http.Request
	call      Call
	body      io.ReadCloser // of the request, until an attempt has taken it over

	resp *http.Response // of the last attempt; nil where there was none
	err  error
}

func (x *exchange) closeBody() {
	if x.body != nil {
		x.body.Close()
	}
}

// attempt sends the request once.
func (x *exchange) attempt(ctx context.Context, n int) Answer {
	x.drop()
	ctx, cancel := context.WithCancel(ctx)
	req, err := x.prepare(httptrace.WithClientTrace(ctx, x.trace()), n)
	if err != nil {
		cancel()
		x.err = err
		return Answer{Kind: Failed, Final: true, Err: err}
	}
	resp, err := x.transport.options.Transport.RoundTrip(req)
	if err != nil {
		cancel()
		x.resp, x.err = nil, err
		return failure(ctx, err)
	}
	resp.Request = x.req
	resp.Body = own(resp.Body, cancel)
	x.resp, x.err = resp, nil
	return x.read(now())
}

// prepare is the request of an attempt: a copy, with the body from its beginning.
func (x *exchange) prepare(ctx context.Context, n int) (*http.Request, error) {
	req := x.req.Clone(ctx)
	if n > 1 {
		if req.Body != nil && req.Body != http.NoBody {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			req.Body = body
		}
		if name := x.transport.options.AttemptHeader; name != "" {
			req.Header.Set(name, strconv.Itoa(n))
		}
	} else {
		x.body = nil // the transport closes it
	}
	if above := x.transport.options.ExpectAbove; above > 0 && asks(req, above) {
		req.Header.Set("Expect", "100-continue")
	}
	return req, nil
}

// trace counts what net/http sends anew by itself.
func (x *exchange) trace() *httptrace.ClientTrace {
	got := 0
	return &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if got++; got > 1 {
			x.transport.mu.Lock()
			x.transport.stats.Resent++
			x.transport.mu.Unlock()
		}
	}}
}

// outcome is what RoundTrip returns.
func (x *exchange) outcome(err error) (*http.Response, error) {
	var why *RateLimitError
	switch {
	case err == nil:
		return x.resp, nil
	case !errors.As(err, &why):
		x.drop()
		return nil, err
	case x.resp != nil:
		x.resp.Request = x.req.WithContext(context.WithValue(x.req.Context(), gaveUp{}, why))
		return x.resp, nil
	case x.err != nil:
		return nil, x.err
	}
	return nil, why
}
