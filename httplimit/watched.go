package httplimit

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/comporta/comporta/policy"
)

// A watched response is one whose answer settles what the request cost, or carries
// a warning. What the answer says is read on its way to the client, before it goes
// there: see [policy.Pending].
type watched struct {
	response
	request  *http.Request
	pending  *policy.Pending // nil where nothing is to be settled
	warnings []warning
	// left is what is still to come of a body that is read and whose length is known;
	// else −1.
	left int64
	cut  bool // a piece did not reach the client

	warned    func(*policy.Verdict, *http.Request) // as in Options
	unsettled func(error, *http.Request)
}

// report reports what could not be settled.
func (w *watched) report(err error) {
	if err != nil && w.unsettled != nil {
		w.unsettled(err, w.request)
	}
}

// watch serves the next handler with a watched response.
func (g *guard) watch(w *watched) {
	returned := false
	defer func() { w.end(returned) }()
	g.next.ServeHTTP(w, w.request)
	returned = true
}

// begin settles what the head decides, and tells.
func (w *watched) begin(status int) {
	if w.guard == nil {
		return
	}
	w.left = -1
	if p := w.pending; p != nil {
		w.report(p.Begin(w.request.Context(), status, w.Header(), w.request.Method == http.MethodHead))
		if p.Reads() {
			if n, err := strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64); err == nil {
				w.left = n
			}
		}
	}
	w.tellAll(status)
}

// tellAll works the fields out of what is settled by now, and tells them.
func (w *watched) tellAll(status int) {
	g := w.guard
	if w.pending != nil {
		v := w.pending.Verdict()
		w.work(v, &g.sets, nil)
		w.warnings = g.warningsOf(v)
	}
	if w.tell(status) {
		putWarnings(w.Header(), w.warnings)
	}
}

// read reads a piece before it is passed on.
func (w *watched) read(p []byte) {
	if w.pending == nil || !w.pending.Reads() {
		return
	}
	ctx := w.request.Context()
	w.report(w.pending.Read(ctx, p))
	if w.left < 0 {
		return
	}
	if w.left -= int64(len(p)); w.left <= 0 {
		w.report(w.pending.End(ctx, true))
	}
}

// end settles the rest. Where the handler panicked before it answered, who recovers
// further out may still do so, with the fields.
func (w *watched) end(returned bool) {
	if returned {
		w.begin(http.StatusOK)
	}
	if w.pending != nil {
		ctx := w.request.Context()
		w.report(w.pending.End(ctx, returned && !w.cut && w.left <= 0 && ctx.Err() == nil))
		if w.pending.Warned() && w.warned != nil {
			w.warned(w.pending.Verdict(), w.request)
		}
	}
	if w.guard != nil {
		w.tellAll(http.StatusOK)
	}
}

func (w *watched) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	w.read(p)
	n, err := w.ResponseWriter.Write(p)
	w.cut = w.cut || err != nil
	return n, err
}

func (w *watched) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// ReadFrom goes by Write where the body is read.
func (w *watched) ReadFrom(r io.Reader) (int64, error) {
	w.begin(http.StatusOK)
	if w.pending == nil || !w.pending.Reads() {
		return w.response.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{w}, r)
}

func (w *watched) FlushError() error {
	w.begin(http.StatusOK)
	return w.response.FlushError()
}

func (w *watched) Flush() { _ = w.FlushError() }

func (w *watched) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.begin(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}
