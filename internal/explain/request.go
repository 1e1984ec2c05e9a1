package explain

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/textproto"
	"os"
	"strings"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// maxRequest bounds a request that is read to be explained.
const maxRequest = 1 << 20

// Options are what is said of a request besides its text.
type Options struct {
	// Headers are more header lines, as "X-API-Key: k".
	Headers []string
	// From is the address at the other end of the socket; 192.0.2.1 unless said.
	From string
}

// defaultFrom is an address of documentation (RFC 5737), which is nobody's.
const defaultFrom = "192.0.2.1"

// ReadRequest reads what is to be explained: a request line, such as "GET /search",
// or the name of a file with a whole HTTP/1 request in it. Errors are sentences,
// and repeat no header's value.
func ReadRequest(engine *policy.Engine, text string, o Options) (*identity.Request, error) {
	raw := []byte(text)
	if method, target, ok := strings.Cut(text, " "); !ok || !isMethod(method) || !strings.Contains(target, "/") {
		data, err := readFile(text)
		if err != nil {
			return nil, err
		}
		raw = data
	}
	return Parse(engine, raw, o)
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%q is neither a request line, as 'GET /search', nor a file that can be read", name)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRequest+1))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	if len(data) > maxRequest {
		return nil, fmt.Errorf("%s is larger than 1 MiB", name)
	}
	return data, nil
}

func isMethod(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// Parse makes a request of its text: a request line alone, or with header lines
// and a body as they go over the wire. Line ends may lack their carriage return,
// and a body its Content-Length.
func Parse(engine *policy.Engine, raw []byte, o Options) (*identity.Request, error) {
	head, body, _ := bytes.Cut(bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
	lines := strings.Split(strings.Trim(string(head), "\n"), "\n")
	if len(strings.Fields(lines[0])) == 2 {
		lines[0] += " HTTP/1.1"
	}
	lines = append(lines, o.Headers...)
	if !hasHeader(lines, "Host") {
		lines = append(lines, "Host: localhost")
	}
	if len(body) > 0 && !hasHeader(lines, "Content-Length") && !hasHeader(lines, "Transfer-Encoding") {
		lines = append(lines, fmt.Sprintf("Content-Length: %d", len(body)))
	}
	text := strings.Join(lines, "\r\n") + "\r\n\r\n" + string(body)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return nil, errors.New("this is no HTTP request: begin with a line such as 'GET /search', then header lines as 'Name: value', an empty line, and the body")
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return nil, errors.New("the request's body is shorter than its Content-Length says")
	}
	peer, ok := identity.ParseAddr(o.from())
	if !ok {
		return nil, fmt.Errorf("%q is no address to come from: write one as 203.0.113.7", o.From)
	}
	return request(engine, r, data, peer)
}

func (o *Options) from() string {
	if o.From == "" {
		return defaultFrom
	}
	return o.From
}

func hasHeader(lines []string, name string) bool {
	for _, line := range lines[1:] {
		if key, _, ok := strings.Cut(line, ":"); ok && textproto.CanonicalMIMEHeaderKey(key) == name {
			return true
		}
	}
	return false
}

// request is the request as limits look at it.
func request(engine *policy.Engine, r *http.Request, body []byte, peer netip.Addr) (*identity.Request, error) {
	_, decoded, err := engine.CleanPath(r.URL.EscapedPath())
	if err != nil {
		return nil, fmt.Errorf("the gateway answers 400: %w", err)
	}
	q := &identity.Request{
		Method: r.Method, Host: identity.Host(r.Host), Path: decoded, Query: r.URL.RawQuery, Header: r.Header, Peer: peer,
	}
	if len(body) > 0 {
		q.Body = func(_ context.Context, most int) ([]byte, bool, error) {
			return body[:min(most, len(body))], len(body) <= most, nil
		}
	}
	return q, nil
}
