package gateway

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What one client wrote as one request must never be two to the upstream, whose
// second would pass by the limits, or be answered to somebody else.
func TestNoRequestHidesInAnother(t *testing.T) {
	var hidden atomic.Int64
	up := api(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.Contains(r.URL.Path, "hidden") {
			hidden.Add(1)
		}
	})
	h := serve(t, up, "limits: [{name: a, match: /hidden, per: everyone, limit: 0/s}, {name: b, per: everyone, limit: 1000/s}]", nil)
	const inner = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, raw := range map[string]string{
		"both lengths":         "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
		"two lengths":          "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 34\r\n\r\n" + inner,
		"a list of lengths":    "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 34\r\n\r\n" + inner,
		"a signed length":      "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: +34\r\n\r\n" + inner,
		"a body on a GET":      "GET /p HTTP/1.1\r\nHost: a\r\nContent-Length: 34\r\n\r\n" + inner,
		"a blank before colon": "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner,
		"a folded field":       "POST /p HTTP/1.1\r\nHost: a\r\nX: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 34\r\n\r\n" + inner,
		"another coding":       "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" + inner,
		"a chunk extension":    "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n22;x=\"\r\n" + inner + "\r\n0\r\n\r\n",
		"a signed chunk":       "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+0\r\n\r\n" + inner,
		"the length is hop-by-hop": "POST /p HTTP/1.1\r\nHost: a\r\nConnection: Content-Length, Transfer-Encoding\r\n" +
			"Content-Length: 34\r\n\r\n" + inner,
		"an encoded line end": "GET /p%20HTTP/1.1%0d%0aHost:%20a%0d%0a%0d%0aGET%20/hidden HTTP/1.1\r\nHost: a\r\n\r\n",
		"a bare CR":           "GET /p HTTP/1.1\r\nHost: a\r\nX: a\rGET /hidden HTTP/1.1\rHost: a\r\r\n\r\n",
	} {
		c, err := net.Dial("tcp", h.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(c, raw)
		_ = c.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(c)
		c.Close()
		if hidden.Swap(0) > 0 || err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 ") {
			t.Errorf("%s: %v\n%s", name, err, answer)
		}
	}
}
