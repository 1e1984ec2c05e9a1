package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// trace counts what net/http sends anew by itself, and holds what has waited there for
// a connection until the gate was shut.
func (t *Transport) trace(ctx context.Context, stop context.CancelCauseFunc) *httptrace.ClientTrace {
	var got atomic.Bool
	return &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if got.Swap(true) {
			t.resent()
		}
		r, ok := ctx.Value(noRetry{}).(*run)
		if !ok {
			return
		}
		if err := r.hold(ctx); err != nil {
			stop(err)
			if t.alone(info.Conn) {
				info.Conn.Close() // else net/http would begin to write
			}
		}
	}}
}

// alone says that a connection carries one request at a time.
func (t *Transport) alone(conn net.Conn) bool {
	if c, ok := conn.(*tls.Conn); ok {
		return c.ConnectionState().NegotiatedProtocol != "h2"
	}
	h, ok := t.options.Transport.(*http.Transport)
	return ok && (h.Protocols == nil || !h.Protocols.UnencryptedHTTP2())
}

// hold keeps an attempt that has left, and has not been sent, while the gate is shut.
// The error is the context's, or a *RateLimitError; then it is not to be sent.
func (r *run) hold(ctx context.Context) (err error) {
	c, lane := r.caller, r.line.lane
	c.mu.Lock()
	defer c.mu.Unlock()
	for held := false; ; held = true {
		at := now()
		told, until := lane.Told(), lane.Ready(at).Must
		switch {
		case !held && !told.After(at):
			return nil
		case !until.After(at):
			lane.Late(at)
			return nil
		case told.Sub(at) > c.config.MaxWait || !r.deadline.IsZero() && !until.Before(r.deadline):
			r.attempts-- // it was none
			err = r.decline(ReasonGate, until.Sub(at), nil)
			r.attempts++
			return err
		}
		c.unlocked(func() { err = sleep(ctx, until.Sub(at), nil) })
		if err != nil {
			return err
		}
	}
}
