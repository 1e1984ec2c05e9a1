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
	// peekTime is how long that may take.
	peekTime = time.Second
)

var (
	errLate  = errors.New("client: the rest of the response's body was not waited for")
	errLetGo = errors.New("client: the rest of the response's body was let go, to send the request again")
)

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

// A peeked body is one of which the beginning has been read, and put back.
type peeked struct {
	*owned
	start []byte
	read  *bytes.Reader // of start, what is left of it
	err   error         // where start ends; nil where the body goes on
}

// peek reads the beginning of a response's body, once: all of it where it is short
// and comes in time. Then its connection is free. It is nil where there is no body,
// or none to be touched.
func peek(resp *http.Response) *peeked {
	if p, ok := resp.Body.(*peeked); ok {
		return p
	}
	b, ok := resp.Body.(*owned)
	if !ok {
		return nil
	}
	p := &peeked{owned: b}
	stop := time.AfterFunc(peekTime, b.cancel)
	p.start, p.err = io.ReadAll(io.LimitReader(b, peekMost))
	switch late := !stop.Stop(); {
	case late:
		p.err = errLate
	case p.err == nil && len(p.start) < peekMost:
		p.err = io.EOF
	}
	if p.err != nil {
		b.Close()
	}
	p.read = bytes.NewReader(p.start)
	resp.Body = p
	return p
}

// letGo gives up what has not been read.
func (p *peeked) letGo() {
	if p.err == nil {
		p.err = errLetGo
		p.Close()
	}
}

func (p *peeked) Read(b []byte) (int, error) {
	if n, err := p.read.Read(b); err == nil {
		return n, nil
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.owned.Read(b)
}
