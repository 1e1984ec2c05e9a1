package httplimit

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// A response is the next handler's http.ResponseWriter: it puts the fields into
// the header once, at the last moment at which the header can be changed, so
// that it sees what the handler put there itself. It is made anew for each
// request: a handler that keeps it too long harms no other.
type response struct {
	http.ResponseWriter
	fields
	guard *guard // whose fields are to be told yet; nil once they are
}

// newResponse is a response with room for the guard's fields, all of it one
// allocation. The less it takes, the less often garbage is collected.
func newResponse(w http.ResponseWriter, g *guard) *response {
	var r *response
	if g.sets.count <= fewValues {
		few := new(struct {
			response
			room [fewValues]string
		})
		r, few.values = &few.response, few.room[:g.sets.count]
	} else {
		all := new(struct {
			response
			room [allValues]string
		})
		r, all.values = &all.response, all.room[:g.sets.count]
	}
	r.ResponseWriter, r.guard = w, g
	return r
}

// tell puts the fields into the header, and reports whether they may stand there.
func (w *response) tell(status int) bool {
	g := w.guard
	w.guard = nil
	h := w.Header()
	if status == http.StatusNotModified || sharedCacheMayKeep(h) {
		return false
	}
	tellStore(h, g.fallen)
	w.putRetry(h)
	w.put(h, &g.sets)
	g.cors.expose(h)
	return true
}

// finish tells where the handler wrote nothing. When it panicked instead, who
// recovers further out may still answer, and answers with the fields.
func (w *response) finish() {
	if w.guard != nil {
		w.tell(http.StatusOK)
	}
}

// WriteHeader tells, unless the status is informational: many of those may come
// before the answer.
func (w *response) WriteHeader(status int) {
	if w.guard != nil && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.tell(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	w.finish()
	return w.ResponseWriter.Write(p)
}

// WriteString saves io.WriteString the copy.
func (w *response) WriteString(s string) (int, error) {
	w.finish()
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom keeps the way open for sendfile.
func (w *response) ReadFrom(r io.Reader) (int64, error) {
	w.finish()
	if to, ok := w.ResponseWriter.(io.ReaderFrom); ok {
		return to.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{w.ResponseWriter}, r)
}

// FlushError is Flush for http.ResponseController.
func (w *response) FlushError() error {
	w.finish()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *response) Flush() { _ = w.FlushError() }

// Hijack puts the fields into the header too: who takes over a connection to
// switch protocols, as httputil.ReverseProxy does, writes its 101 from there.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.guard != nil {
		w.tell(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

// Unwrap is for http.ResponseController: deadlines, full duplex.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
