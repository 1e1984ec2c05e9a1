package egress

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/comporta/comporta/config"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Whatever the path, what reaches an API is what was written behind the API's own
// path, to the letter, and leads nowhere else, for those who decode it again.
func TestPathsStayInside(t *testing.T) {
	cfg, err := config.ParseEgress("egress.yaml", []byte(`{listen: "127.0.0.1:0", metrics: "off", apis: [`+
		`{name: a, path: /a, upstream: "http://one.test/base"}, {name: b, path: /a/b, upstream: "http://two.test/x/y/"}, {name: c, path: /c, upstream: "http://three.test"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var sent *http.Request
	g, err := New(Options{Config: cfg, Log: slog.New(slog.DiscardHandler), Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		sent = req
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer g.listener.Close()
	bases := map[string]string{"one.test": "/base", "two.test": "/x/y", "three.test": ""}
	fronts := map[string]string{"one.test": "/a", "two.test": "/a/b", "three.test": "/c"}
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"/", "/..", "/%2e.", "/..%2f", "/%252e%252e", "%2f../", "/a", "a", "b", "c", ".", "..", "%2e", "%2E", "%2f", "%5c", "%252e", "%25", `\`, ";x", "%3b", "%00", "~", "!", "'", "(", "[", "|", "ä", "%c3%a4", "%", "//"})
		target := rapid.SampledFrom([]string{"/a", "/a/b", "/c", "/a/b/", ""}).Draw(t, "front") + strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "rest"), "")
		query := rapid.SampledFrom([]string{"", "?", "?q=1;2", "?q=%zz&../..", "?a=b&a=c"}).Draw(t, "query")
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + query + " HTTP/1.1\r\nHost: h\r\n\r\n")))
		if err != nil {
			return // net/http answers this one
		}
		sent = nil
		w := httptest.NewRecorder()
		g.ServeHTTP(w, req)
		if sent == nil {
			if w.Code != 400 && w.Code != 404 {
				t.Fatalf("%q: %d", target, w.Code)
			}
			return
		}
		passed++
		front, base := fronts[sent.URL.Host], bases[sent.URL.Host]
		written := target
		if _, err := url.ParseRequestURI(target); err != nil || strings.ContainsAny(target, `\|ä`) {
			written = req.URL.EscapedPath() // not to be sent as it is
		}
		want := base + strings.TrimPrefix(written, front)
		if !strings.HasPrefix(want, "/") {
			want = "/" + want
		}
		if got := sent.URL.RequestURI(); got != want+query {
			t.Fatalf("%q became %q, want %q", target+query, got, want+query)
		}
		if sent.Host != "" && sent.Host != sent.URL.Host {
			t.Fatalf("%q: to %q", target, sent.Host)
		}
		for p, i := sent.URL.EscapedPath(), 0; i < 3; i++ {
			if clean := path.Clean(strings.ReplaceAll(p, `\`, "/")); base != "" && clean != base && !strings.HasPrefix(clean, base+"/") {
				t.Fatalf("%q leads to %q, out of %q", target, clean, base)
			}
			if p, err = url.PathUnescape(p); err != nil {
				break
			}
		}
	})
	if passed == 0 {
		t.Error("no path passed")
	}
}

// A page of another site that a browser of this machine shows spends nothing; a
// program's request says no such thing, and a page of this machine's says another.
func TestPagesOfOthers(t *testing.T) {
	p := newThirdParty(t, func(http.ResponseWriter, *http.Request) {})
	g := run(t, `- {name: pay, path: /, upstream: "`+p.URL+`"}`, io.Discard)
	for site, want := range map[string]int{"": 200, "none": 200, "same-origin": 200, "same-site": 200, "cross-site": 403} {
		req, _ := http.NewRequest("POST", "http://"+g.Addr()+"/x", strings.NewReader("order"))
		if site != "" {
			req.Header.Set("Sec-Fetch-Site", site)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%q: %s, want %d", site, resp.Status, want)
		}
	}
	if len(p.bodies) != 4 {
		t.Errorf("%d reached the API, want 4", len(p.bodies))
	}
}

// An upgraded connection passes both ways.
func TestUpgrade(t *testing.T) {
	p := newThirdParty(t, func(w http.ResponseWriter, req *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+req.Header.Get("Upgrade")+"\r\n\r\n")
		rw.Flush()
		line, _ := rw.ReadString('\n')
		io.WriteString(rw, "you said "+line)
		rw.Flush()
	})
	g := run(t, `- {name: pay, path: /, upstream: "`+p.URL+`"}`, io.Discard)
	req, _ := http.NewRequest("GET", "http://"+g.Addr()+"/socket", nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	conn, ok := resp.Body.(io.ReadWriter)
	if resp.StatusCode != 101 || !ok {
		t.Fatal(resp.Status)
	}
	io.WriteString(conn, "hello\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "you said hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// What speaks no HTTP may answer with what it was sent: that is in no log, and in no
// answer.
func TestSecretsThatComeBack(t *testing.T) {
	for _, form := range []string{"GET %s HTTP/1.1\r\n%s\r\n\r\n", "HTTP/1.1 200 OK\r\n%s %s\r\n\r\n"} {
		p := newThirdParty(t, func(w http.ResponseWriter, req *http.Request) {
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(rw, form, req.RequestURI, req.Header.Get("Authorization"))
			rw.Flush()
		})
		var logs syncBuffer
		g := run(t, `- {name: pay, path: /, upstream: "`+p.URL+`", headers: {Authorization: {file: api.key}}}`, &logs)
		resp, text := get(t, "http://"+g.Addr()+"/x?key=secret")
		if resp.StatusCode != 502 || !strings.Contains(logs.String(), "the API cannot be reached") {
			t.Error(resp.Status, logs.String())
		}
		if strings.Contains(text+logs.String(), "secret") {
			t.Error(text, logs.String())
		}
	}
}
