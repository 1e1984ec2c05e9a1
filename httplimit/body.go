package httplimit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/comporta/comporta/identity"
)

// readWithin is how long limits wait for what they read of a body.
const readWithin = 10 * time.Second

// errSlowBody is the error of a body that did not come in time.
var errSlowBody = &identity.RequestError{Status: http.StatusRequestTimeout, Detail: "The request's body did not come in time."}

func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

// A beginning is how limits read the beginning of a request's body. Nothing is read
// unless they do.
type beginning struct {
	answer  http.ResponseWriter
	request *http.Request
	begun   *begun // nil while nothing was read
}

// read is what a request's Body does (identity.Request).
func (b *beginning) read(ctx context.Context, most int) (data []byte, whole bool, err error) {
	if b.begun == nil {
		b.begun = &begun{ReadCloser: b.request.Body}
	}
	from := b.begun
	if from.err == nil && len(from.text) <= most {
		// One byte more tells whether there is more.
		inTime := within(ctx, b.answer, func(ctx context.Context) { from.fill(ctx, most+1) })
		if !inTime && (from.err == nil || from.err == io.EOF) {
			from.err = errSlowBody // the deadline is over for whoever reads on, too
		}
	}
	switch {
	case from.err != nil && from.err != io.EOF:
		return nil, false, fault(from.err)
	case len(from.text) > most:
		return from.text[:most], false, nil
	}
	return from.text, true, nil
}

// within reads from the connection for readWithin at most, and no longer than ctx
// goes on; it reports false where that was cut short.
func within(ctx context.Context, answer http.ResponseWriter, read func(context.Context)) bool {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	given := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = http.NewResponseController(answer).SetReadDeadline(time.Unix(1, 0))
		close(given)
	})
	read(ctx)
	if stop() {
		return true
	}
	<-given // the connection may soon be another request's
	return false
}

// fault is why a body that cannot be read refuses the request.
func fault(err error) *identity.RequestError {
	if refused, ok := errors.AsType[*identity.RequestError](err); ok {
		return refused
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &identity.RequestError{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("The request's body is over %d bytes.", large.Limit)}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errSlowBody
	}
	return &identity.RequestError{Status: http.StatusBadRequest, Detail: "The request's body ended before its end."}
}

// begun is a body of which the beginning was read. It is handed on as it came, with
// the error that it ends with.
type begun struct {
	io.ReadCloser
	text []byte
	err  error
}

// fill reads until there are so many bytes, or the end, or the context ends: bytes
// that come one by one may have moved the deadline.
func (b *begun) fill(ctx context.Context, size int) {
	for len(b.text) < size && b.err == nil && ctx.Err() == nil {
		b.text = slices.Grow(b.text, min(512, size-len(b.text)))
		n := 0
		n, b.err = b.ReadCloser.Read(b.text[len(b.text):min(size, cap(b.text))])
		b.text = b.text[:len(b.text)+n]
	}
}

func (b *begun) Read(p []byte) (int, error) {
	switch {
	case len(b.text) > 0:
		n := copy(p, b.text)
		b.text = b.text[n:]
		return n, nil
	case b.err != nil:
		return 0, b.err
	}
	return b.ReadCloser.Read(p)
}
