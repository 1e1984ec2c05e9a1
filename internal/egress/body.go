package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// What is wrong with a body, where it is the program's doing and not the API's.
var (
	errSlowBody   = errors.New("the request's body did not come in time")
	errBrokenBody = errors.New("the request's body is malformed, or ended before its end")
)

// late is how much longer than its request's time a body may take. net/http takes a
// read that fails for a program that hung up, and ends the request's context: that
// is to have ended by itself then.
const late = 100 * time.Millisecond

// bound gives a request's body the time that its context has: a read of it would
// wait for ever, and so would net/http, which reads what is left of it before an
// answer leaves.
func bound(w http.ResponseWriter, req *http.Request) (*http.Request, error) {
	deadline, ok := req.Context().Deadline()
	if !ok || req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	b := &body{ReadCloser: req.Body, connection: http.NewResponseController(w)}
	req = req.WithContext(context.WithValue(req.Context(), bodyOf{}, b))
	req.Body = b
	return req, b.connection.SetReadDeadline(deadline.Add(late))
}

// A body is a program's, read from its connection until that one's deadline.
type body struct {
	io.ReadCloser
	connection *http.ResponseController
	awaited    atomic.Bool // more of it is, or was until the deadline
}

type bodyOf struct{}

// awaited says whether the program did not send in time what the API is waiting for.
func awaited(req *http.Request) bool {
	b, ok := req.Context().Value(bodyOf{}).(*body)
	return ok && b.awaited.Load()
}

func (b *body) Read(p []byte) (int, error) {
	b.awaited.Store(true)
	n, err := b.ReadCloser.Read(p)
	b.awaited.Store(errors.Is(err, os.ErrDeadlineExceeded))
	switch {
	case err == nil:
	case err == io.EOF:
		// net/http now waits on the connection for the program to hang up.
		_ = b.connection.SetReadDeadline(time.Time{}) // it could be set
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSlowBody
	default:
		err = errBrokenBody
	}
	return n, err
}

// keepBody reads a body that is small enough, so that it can be sent again; others
// stream.
func keepBody(req *http.Request, most int64) error {
	if req.Body == nil || req.Body == http.NoBody || req.ContentLength > most || req.Header.Get("Upgrade") != "" {
		return nil
	}
	start, err := io.ReadAll(io.LimitReader(req.Body, most+1))
	if err != nil {
		return err
	}
	if int64(len(start)) > most {
		req.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(start), req.Body), req.Body}
		return nil
	}
	if len(req.Trailer) == 0 { // they stand behind chunks alone
		req.ContentLength = int64(len(start))
		req.TransferEncoding = nil
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(start)), nil }
	req.Body, _ = req.GetBody()
	return nil
}
