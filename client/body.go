package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// peekMost is read of a refusal's body, to see what it says and to keep its
	// connection; what is larger costs the connection.
	peekMost = 64 << 10
	// peekTime is how long that is waited for.
	peekTime = time.Second
)

var errLetGo = errors.New("client: the rest of the response's body was let go, to send the request again")

// own is a response's body that ends the attempt's context when it is closed or
// read to its end. After an upgrade it can be written to as before.
func own(body io.ReadCloser, cancel context.CancelFunc) io.ReadCloser {
	if body == nil || body == http.NoBody {
		cancel()
		return http.NoBody
	}
	b := owned{body, cancel}
	if w, ok := body.(io.Writer); ok {
		return &upgraded{b, w}
	}
	return &b
}

type owned struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *owned) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.cancel()
	}
	return n, err
}

func (b *owned) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// An upgraded body is that of a 101, as net/http makes it.
type upgraded struct {
	owned
	io.Writer
}

func (b *upgraded) CloseWrite() error {
	if w, ok := b.Writer.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return http.ErrNotSupported
}

// A peeked body is one of which the beginning is read ahead.
type peeked struct {
	*owned
	letGo bool
	begun chan struct{} // closed when start has been read
	start []byte        // the beginning
	err   error         // where start ends; nil where the body goes on
	read  *bytes.Reader // of start, what is left of it
}

// peek reads the beginning of a response's body, once: all of it where it is short.
// Then its connection is free. What does not come in time is read on for whoever
// gets the response. It is nil where there is no body, or none to be touched.
func peek(resp *http.Response) *peeked {
	if p, ok := resp.Body.(*peeked); ok {
		return p
	}
	b, ok := resp.Body.(*owned)
	if !ok {
		return nil
	}
	p := &peeked{owned: b, begun: make(chan struct{})}
	resp.Body = p
	go p.begin()
	timer := time.NewTimer(peekTime)
	defer timer.Stop()
	select {
	case <-p.begun:
	case <-timer.C:
	}
	return p
}

func (p *peeked) begin() {
	p.start, p.err = io.ReadAll(io.LimitReader(p.owned, peekMost))
	if p.err == nil && len(p.start) < peekMost {
		p.err = io.EOF
	}
	p.read = bytes.NewReader(p.start)
	close(p.begun)
}

// seen is the beginning, as far as it has come in time.
func (p *peeked) seen() []byte {
	if p.came() {
		return p.start
	}
	return nil
}

func (p *peeked) came() bool {
	select {
	case <-p.begun:
		return true
	default:
		return false
	}
}

// end gives up what has not been read.
func (p *peeked) end() {
	p.letGo = !p.came() || p.err == nil
	p.Close()
}

func (p *peeked) Read(b []byte) (int, error) {
	if p.letGo && !p.came() {
		return 0, errLetGo
	}
	<-p.begun
	if n, err := p.read.Read(b); err == nil {
		return n, nil
	}
	switch {
	case p.letGo:
		return 0, errLetGo
	case p.err != nil:
		return 0, p.err
	}
	return p.owned.Read(b)
}
