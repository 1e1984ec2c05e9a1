package client

import (
	"bytes"
	"context"
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

// own is a response's body that ends the attempt's context when it is closed or
// read to its end. One that can be written to, after an upgrade, stays so.
func own(body io.ReadCloser, cancel context.CancelFunc) io.ReadCloser {
	b := &owned{body, cancel}
	if w, ok := body.(io.Writer); ok {
		return struct {
			*owned
			io.Writer
		}{b, w}
	}
	return b
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

// peek reads the beginning of a refusal's body and puts it back. Where all of it
// came in time, its connection is free; where reading it takes too long or fails,
// the error stands where the body ends.
func peek(resp *http.Response) []byte {
	b, ok := resp.Body.(*owned)
	if !ok {
		return nil // an upgrade
	}
	stop := time.AfterFunc(peekTime, b.cancel)
	start, err := io.ReadAll(io.LimitReader(b, peekMost))
	late := !stop.Stop()
	rest := io.Reader(b)
	switch {
	case err != nil:
		b.Close()
		rest = failing{err}
	case late || len(start) < peekMost:
		b.Close()
		rest = bytes.NewReader(nil)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), rest), b}
	return start
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
