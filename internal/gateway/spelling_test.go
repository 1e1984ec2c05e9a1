package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// line sends a request of which only the first line and the host are told, as
// they are, and is the status.
func line(t *testing.T, h *house, first, host string) int {
	t.Helper()
	c, err := net.Dial("tcp", h.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := fmt.Fprintf(c, "%s\r\nHost: %s\r\nConnection: close\r\n\r\n", first, host); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// Some upstreams read a method or a host that limits did not match as one that
// they would have.
func TestNoSpellingOfMethodOrHostPassesByALimit(t *testing.T) {
	var asked atomic.Int64
	h := serve(t, api(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) }), `limits:
  - {name: search, match: GET /search, per: everyone, limit: 0/s}
  - {name: hosted, match: api.example.com/, per: everyone, limit: 0/s}`, nil)
	for _, test := range []struct{ first, host string }{
		{"GET /search HTTP/1.1", "a"}, {"get /search HTTP/1.1", "a"}, {"Get /search HTTP/1.1", "a"}, {"head /search HTTP/1.1", "a"},
		{"GET / HTTP/1.1", "api.example.com"}, {"GET / HTTP/1.1", "API.example.com.:80"},
		{"GET / HTTP/1.1", "api.example.com:80:80"}, {"GET / HTTP/1.1", "api.example.com.."}, {"GET / HTTP/1.1", "api.example.com:80,a"},
		{"GET / HTTP/1.1", "api.example.com,a"}, {"GET / HTTP/1.1", "api%2eexample.com"}, {"GET / HTTP/1.1", "api.example.com:"},
		{"GET http://api.example.com/ HTTP/1.1", "a"}, {"GET http://a@api.example.com/ HTTP/1.1", "a"},
		{"GET http://ａpi.example.com/ HTTP/1.1", "a"}, {"GET http://%EF%BD%81pi.example.com/ HTTP/1.1", "a"},
		{"GET / HTTP/1.1", "[::1]:1:1"}, {"GET / HTTP/1.1", "[::1%25eth0]"}, {"GET / HTTP/1.1", "[api.example.com]"},
	} {
		if s := line(t, h, test.first, test.host); !slices.Contains([]int{http.StatusBadRequest, http.StatusTooManyRequests}, s) {
			t.Errorf("%s to %s: status %d", test.first, test.host, s)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests got through", n)
	}
	for _, host := range []string{"a", "a-b.example:8080", "a_b.example.", "127.0.0.1:80", "[::1]", "[2001:db8::1]:443", "xn--pi-bz3n.example"} {
		if s := line(t, h, "GET / HTTP/1.1", host); s != http.StatusOK {
			t.Errorf("host %s: status %d", host, s)
		}
	}
}
