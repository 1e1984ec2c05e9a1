package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/comporta/comporta/identity"
)

// bodyTimeout is how long a client may let the gateway wait for the next piece
// of a body.
const bodyTimeout = 30 * time.Second

// leftTimeout is how long the body of a request that is refused may take to
// come: the refusal is sent after it.
const leftTimeout = 5 * time.Second

// errSlowBody is the error of a body that did not come in time, also for limits
// that look into it.
var errSlowBody = &identity.RequestError{Status: http.StatusRequestTimeout, Detail: "The request's body did not come in time."}

// errBrokenBody is the error of a body that its client did not send as it said. It
// is no failure of the upstream's, for which costs may be given back.
var errBrokenBody = &identity.RequestError{Status: http.StatusBadRequest, Detail: "The request's body is malformed, or ended before its end."}

// bodies gives every request's body its pace and its bound, before anybody reads it.
func (s *reign) bodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody {
			x := exchangeOf(r.Context())
			x.body = &body{ReadCloser: http.MaxBytesReader(w, r.Body, s.Server.MaxBodyBytes), deadline: http.NewResponseController(w)}
			r.Body = x.body
		}
		next.ServeHTTP(w, r)
	})
}

// bounds stands before the proxy: a body over the bound is refused with 413, at
// once where its length is known; one that stops coming is given up; a CONNECT,
// which asks for a tunnel past the limits, is refused, and so are methods and
// hosts that an upstream might read as others than those that limits matched.
func (s *reign) bounds(next http.Handler) http.Handler {
	most := s.Server.MaxBodyBytes
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		switch {
		case r.Method == http.MethodConnect:
			s.problem(w, r, http.StatusMethodNotAllowed, "This is no proxy for CONNECT.")
			return
		case r.ContentLength > most:
			x.failure = "body_too_large"
			s.answerTooLarge(w, r, most)
			return
		case !isMethod(r.Method):
			s.problem(w, r, http.StatusBadRequest, "The request was refused: the method is not written in capitals.")
			return
		case !isHost(r.Host):
			s.problem(w, r, http.StatusBadRequest, "The request was refused: the host could be read in more than one way.")
			return
		case x.body != nil:
			x.unread = false
			defer x.body.leave()
		}
		next.ServeHTTP(w, r)
	})
}

// A body gives each read at most bodyTimeout, by a deadline that is moved once a
// second at most.
type body struct {
	io.ReadCloser
	deadline *http.ResponseController

	mu    sync.Mutex
	armed time.Time
	over  bool // the deadline is not this body's to move any more
}

func (b *body) Read(p []byte) (int, error) {
	b.arm()
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, errSlowBody
	}
	b.release(time.Time{}) // net/http now waits on the connection for the client to hang up
	if _, large := errors.AsType[*http.MaxBytesError](err); !large && err != io.EOF {
		err = errBrokenBody
	}
	return n, err
}

func (b *body) arm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := now(); !b.over && t.Sub(b.armed) > time.Second {
		b.armed = t
		_ = b.deadline.SetReadDeadline(t.Add(bodyTimeout))
	}
}

// release moves the deadline for the last time.
func (b *body) release(deadline time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over = true
		_ = b.deadline.SetReadDeadline(deadline)
	}
}

// leave is for a handler that returns before the body's end: net/http reads some
// of what is left, and may not do so for ever.
func (b *body) leave() { b.release(now().Add(bodyTimeout)) }

func (s *reign) answerTooLarge(w http.ResponseWriter, r *http.Request, most int64) {
	s.problem(w, r, http.StatusRequestEntityTooLarge, fmt.Sprintf("The request's body is over %d bytes.", most))
}

// isMethod says whether a method has no small letters. "get" is not GET, but some
// upstreams take it for that.
func isMethod(s string) bool {
	for i := range len(s) {
		if 'a' <= s[i] && s[i] <= 'z' {
			return false
		}
	}
	return true
}

// isHost says whether a host is a name or an IPv6 address in brackets, with one
// port at most. What net/http lets through besides is read in many ways: from
// a.example:80:80 some take the port off at the first colon. HTTP/1.0 has an
// empty one.
func isHost(s string) bool {
	name := s
	if colon := strings.LastIndexByte(s, ':'); colon >= 0 && !strings.HasSuffix(s, "]") {
		if strings.Trim(s[colon+1:], "0123456789") != "" {
			return false
		}
		name = s[:colon]
	}
	if strings.HasPrefix(name, "[") {
		address, err := netip.ParseAddr(strings.TrimSuffix(name[1:], "]"))
		return err == nil && address.Is6() && address.Zone() == "" && strings.HasSuffix(name, "]")
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
	return strings.Trim(name, letters) == "" && !strings.Contains(name, "..")
}
