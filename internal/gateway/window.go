package gateway

import (
	"net/http"
	"time"
)

// Over HTTP/2 a write waits for the client to open the window of its stream,
// which the connection's own deadline knows nothing of: frames of other kinds go
// on. So each write, each flush, and what net/http writes after the handler, gets
// writeTimeout by a deadline of the stream, which then ends.

// hurry bounds what is written from here on.
func (x *exchange) hurry() {
	if x.windowed {
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(now().Add(writeTimeout))
	}
}

// rest lifts the bound: between writes a stream may be silent for long.
func (x *exchange) rest() {
	if x.windowed {
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Time{})
	}
}

// FlushError is Flush for http.ResponseController.
func (x *exchange) FlushError() error {
	x.hurry()
	defer x.rest()
	return http.NewResponseController(x.ResponseWriter).Flush()
}
