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
//
// A deadline of the request's context, which http.Client makes of its Timeout, is
// for all attempts and the waits between them.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &exchange{transport: t, req: req, body: req.Body}
	defer x.closeBody()
	if req.URL == nil {
		return nil, errors.New("client: the request has no URL")
	}
	x.call = t.callOf(req)
	x.call.again = x.again
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
	if replayable(req) && !t.isRetry(req) {
		call.Repeat = repeatable(req)
		call.Resend = call.Repeat || t.options.RetryRefused
	}
	return call
}

// isRetry says that a request is sent again by somebody who uses this transport:
// retries of retries multiply.
func (t *Transport) isRetry(req *http.Request) bool {
	name := t.options.AttemptHeader
	return name != "" && req.Header.Get(name) != ""
}

// An exchange is a request with the answers to its attempts.
type exchange struct {
	transport *Transport
	req       *http.Request
	call      Call
	body      io.ReadCloser // of the next attempt, until it has taken it over

	resp  *http.Response // of the last attempt; nil where there was none
	err   error
	ended bool // by the context
}

func (x *exchange) closeBody() {
	if x.body != nil {
		x.body.Close()
		x.body = nil
	}
}

// attempt sends the request once.
func (x *exchange) attempt(ctx context.Context, n int) Answer {
	x.drop()
	expects := x.expects()
	resp, err := x.send(ctx, n, expects)
	if err == nil && expects && resp.StatusCode == http.StatusExpectationFailed && x.rewind() == nil {
		// The server does not know of this expectation, and has not acted.
		resp.Body.Close()
		x.transport.resent()
		resp, err = x.send(ctx, n, false)
	}
	x.resp, x.err = resp, err
	if err != nil {
		a := failure(ctx, err)
		x.ended = a.Kind == Cancelled
		return a
	}
	return x.read(now())
}

// send sends a copy of the request; its context lives as long as the response.
func (x *exchange) send(ctx context.Context, n int, expect bool) (*http.Response, error) {
	ctx, stop := context.WithCancelCause(ctx)
	cancel := func() { stop(nil) }
	req := x.req.Clone(httptrace.WithClientTrace(ctx, x.transport.trace(ctx, stop)))
	req.Body, x.body = x.body, nil // the transport closes it
	req.Trailer = x.req.Trailer    // values come while the body is read: they stay its own
	if req.Header == nil {
		req.Header = http.Header{}
	}
	if name := x.transport.options.AttemptHeader; name != "" && n > 1 {
		req.Header.Set(name, strconv.Itoa(n))
	}
	if expect {
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := x.transport.options.Transport.RoundTrip(req)
	if err == nil && resp == nil {
		err = errors.New("client: the transport returned neither a response nor an error")
	}
	if err != nil {
		var held *RateLimitError
		if errors.As(context.Cause(ctx), &held) {
			err = held
		}
		cancel()
		return nil, err
	}
	resp.Request = x.req
	resp.Body = own(resp.Body, cancel)
	return resp, nil
}

// expects says whether the server is asked before the body is sent.
func (x *exchange) expects() bool {
	above := x.transport.options.ExpectAbove
	return above > 0 && x.body != nil && asks(x.req, above)
}

// rewind gets the request's body anew, from its beginning.
func (x *exchange) rewind() error {
	switch {
	case x.req.Body == nil || x.req.Body == http.NoBody:
		x.body = x.req.Body
		return nil
	case x.req.GetBody == nil:
		return errors.New("client: the request's body cannot be sent again without GetBody")
	}
	body, err := x.req.GetBody()
	if err == nil && (body == nil || body == http.NoBody) {
		err = errors.New("client: the request's GetBody gives no body")
	}
	if err == nil {
		x.body = body
	}
	return err
}

// again prepares the next attempt. What was refused frees its connection, and stays
// readable as far as that allows: it may yet be the last answer.
func (x *exchange) again() error {
	if err := x.rewind(); err != nil {
		return err
	}
	if x.resp != nil {
		if p := peek(x.resp); p != nil {
			p.end()
		}
	}
	return nil
}

func (t *Transport) resent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Resent++
}

// drop lets go of a response that nobody will read.
func (x *exchange) drop() {
	if x.resp != nil {
		x.resp.Body.Close()
		x.resp = nil
	}
}

// outcome is what RoundTrip returns.
func (x *exchange) outcome(err error) (*http.Response, error) {
	var why *RateLimitError
	switch {
	case err == nil:
		return x.resp, nil
	case !errors.As(err, &why):
		x.drop()
		if x.ended {
			err = x.err // in the transport's words
		}
		return nil, err
	case x.resp != nil:
		x.resp.Request = x.req.WithContext(context.WithValue(x.req.Context(), gaveUp{}, why))
		return x.resp, nil
	case x.err != nil:
		return nil, x.err
	}
	return nil, why
}
