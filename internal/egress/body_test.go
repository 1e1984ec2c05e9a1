package egress

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// send writes a request as it stands, and reads the answer, without hanging up.
func send(t *testing.T, g *Gateway, request string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", g.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	for answers := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusContinue { // the API was asked
			return resp
		}
	}
}

// A body that stops coming holds a request no longer than its time, whether it is
// kept or streams; one that is malformed is no failure of the API's.
func TestBodiesThatDoNotCome(t *testing.T) {
	p := newThirdParty(t, func(http.ResponseWriter, *http.Request) {})
	g := run(t, `- {name: pay, path: /, upstream: "`+p.URL+`", max_body: 1KiB, timeout: 200ms}`, io.Discard)
	long := "Transfer-Encoding: chunked\r\n\r\n800\r\n" + strings.Repeat("x", 0x800) + "\r\n"
	for name, c := range map[string]struct {
		rest   string
		status int
	}{
		"short and slow":   {"Content-Length: 5\r\n\r\n1", 408},
		"long and slow":    {"Content-Length: 500000\r\n\r\n1", 408},
		"chunks, slow":     {long, 408},
		"chunks, broken":   {long + "zz\r\n", 400},
		"small and broken": {"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
	} {
		resp := send(t, g, "POST /x HTTP/1.1\r\nHost: h\r\n"+c.rest)
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", name, resp.StatusCode, c.status)
		}
	}
}

// Trailers come through, whether a body is kept or streams.
func TestTrailers(t *testing.T) {
	p := newThirdParty(t, func(http.ResponseWriter, *http.Request) {})
	g := run(t, `- {name: pay, path: /, upstream: "`+p.URL+`", max_body: 1KiB}`, io.Discard)
	for _, body := range []string{"short", strings.Repeat("long", 1000)} {
		req, err := http.NewRequest("POST", "http://"+g.Addr(), io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Trailer = http.Header{"X-Sum": {"7"}}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := p.last().Trailer.Get("X-Sum"); got != "7" {
			t.Errorf("%d bytes: the trailer is %q", len(body), got)
		}
	}
}

// The gateway's own field is not the API's to write, and what an API is asked with
// is not sent back.
func TestTheGatewaysOwn(t *testing.T) {
	p := newThirdParty(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(reasonField, "gate") })
	g := run(t, `- {name: pay, path: /, upstream: "`+p.URL+`"}`, io.Discard)
	if resp, _ := get(t, "http://"+g.Addr()); resp.Header.Get(reasonField) != "" {
		t.Error(resp.Header)
	}
	if resp := send(t, g, "TRACE / HTTP/1.1\r\nHost: h\r\n\r\n"); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Error(resp.Status)
	}
}
