package httplimit

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// wait waits for d; false if the client is gone first. Over HTTP/1 net/http
// notices that only once a body is read to its end, so a small one is read
// meanwhile; it is there, whole, in the request that goes on.
func wait(r *http.Request, d time.Duration) (*http.Request, bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var body *ahead
	var read <-chan struct{}
	if r.ProtoMajor == 1 && hasBody(r) {
		body = readAhead(r.Body)
		copied := *r
		copied.Body, read = body, body.done
		r = &copied
	}
	for {
		select {
		case <-timer.C:
			return r, true
		case <-r.Context().Done():
			return r, false
		case <-read:
			if body.cutShort() {
				return r, false
			}
			read = nil
		}
	}
}

// aheadMost is how much of a body is read ahead. A client that hangs up behind a
// larger one is noticed when its turn comes.
const aheadMost = 64 << 10

// An ahead is a body of which the beginning is read at once.
type ahead struct {
	body io.ReadCloser
	done chan struct{} // closed when text and err are there, and nobody else reads body
	text []byte
	err  error // what reading ended with; nil at the end, and where there is more
}

func readAhead(body io.ReadCloser) *ahead {
	a := &ahead{body: body, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.text, a.err = io.ReadAll(io.LimitReader(body, aheadMost))
	}()
	return a
}

// cutShort says whether the connection ended before the body did. It is asked
// when done is closed.
func (a *ahead) cutShort() bool {
	var broken *net.OpError
	return errors.Is(a.err, io.ErrUnexpectedEOF) || errors.As(a.err, &broken)
}

func (a *ahead) Read(p []byte) (int, error) {
	<-a.done
	switch {
	case len(a.text) > 0:
		n := copy(p, a.text)
		a.text = a.text[n:]
		return n, nil
	case a.err != nil:
		return 0, a.err
	}
	return a.body.Read(p)
}

func (a *ahead) Close() error {
	<-a.done
	return a.body.Close()
}
