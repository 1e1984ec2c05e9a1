package egress

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// What is wrong with a body, where it is the program's doing and not the API's.
var (
	errSlowBody   = errors.New("the request's body did not come in time")
	errBrokenBody = errors.New("the request's body is malformed, or ended before its end")
)

// bound gives a request's body the time that its context has: a read of it would
// wait for ever, and so would net/http, which reads what is left of it before an
// answer leaves.
func bound(w http.ResponseWriter, req *http.Request) error {
	deadline, ok := req.Context().Deadline()
	if !ok || req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	connection := http.NewResponseController(w)
	req.Body = &body{req.Body, connection}
	return connection.SetReadDeadline(deadline)
}

// A body is a program's, read from its connection until that one's deadline.
type body struct {
	io.ReadCloser
	connection *http.ResponseController
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
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
