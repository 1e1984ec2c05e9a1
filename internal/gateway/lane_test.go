package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"
)

// script is an upstream that gives each connection to a function, with its number.
func script(t *testing.T, talk func(i int, c net.Conn, r *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				talk(i, c, bufio.NewReader(c))
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// hear reads one request; false at the connection's end.
func hear(r *bufio.Reader) bool {
	_, err := http.ReadRequest(r)
	return err == nil
}

func answer(c net.Conn, text string) {
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

func TestAConnectionToTheUpstreamServesManyRequests(t *testing.T) {
	up := script(t, func(i int, c net.Conn, r *bufio.Reader) {
		for hear(r) {
			answer(c, fmt.Sprint("connection ", i))
		}
	})
	h, c := serve(t, up, generous, nil), client(t)
	for range 5 {
		if _, text := get(t, c, h.url+"/"); text != "connection 0" {
			t.Errorf("got %q", text)
		}
	}
}

// What an upstream says without being asked must not be taken for the answer to
// the next request, which may be somebody else's.
func TestAnAnswerToNoRequestIsNotPassedOn(t *testing.T) {
	said := make(chan struct{})
	up := script(t, func(i int, c net.Conn, r *bufio.Reader) {
		for hear(r) {
			answer(c, fmt.Sprint("connection ", i))
			if i == 0 {
				<-said
				answer(c, "somebody else's")
				said <- struct{}{}
			}
		}
	})
	h, c := serve(t, up, generous, nil), client(t)
	get(t, c, h.url+"/")
	said <- struct{}{}
	<-said
	if _, text := get(t, c, h.url+"/"); text != "connection 1" {
		t.Errorf("got %q", text)
	}
}

// Nor must what is left behind an answer, however the upstream miscounts.
func TestWhatFollowsAnAnswerIsNotPassedOn(t *testing.T) {
	const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	for name, test := range map[string]struct{ method, head string }{
		"a length too short":     {http.MethodGet, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"},
		"a length beside chunks": {http.MethodGet, "HTTP/1.1 200 OK\r\nContent-Length: 999\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
		"204 with a body":        {http.MethodGet, "HTTP/1.1 204 No Content\r\nContent-Length: 48\r\n\r\n"},
		"304 with a body":        {http.MethodGet, "HTTP/1.1 304 Not Modified\r\nContent-Length: 48\r\n\r\n"},
		"HEAD with a body":       {http.MethodHead, "HTTP/1.1 200 OK\r\nContent-Length: 48\r\n\r\n"},
		"the old kind, kept":     {http.MethodGet, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"},
		"after hints":            {http.MethodGet, "HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
	} {
		up := script(t, func(i int, c net.Conn, r *bufio.Reader) {
			for hear(r) {
				if i == 0 {
					_, _ = io.WriteString(c, test.head+evil)
				} else {
					answer(c, "good")
				}
			}
		})
		h, c := serve(t, up, generous, nil), client(t)
		do(t, c, test.method, h.url, nil)
		if _, text := get(t, c, h.url); text != "good" {
			t.Errorf("%s: the next request got %q", name, text)
		}
	}
}

func TestANameThatIsNotASCIIIsForHTTPTransport(t *testing.T) {
	for _, name := range []string{"b\u00fccher.example", "api.example"} {
		to := &url.URL{Scheme: "http", Host: name}
		if got, want := newLanes(to, new(net.Dialer), 0) != nil, name == "api.example"; got != want {
			t.Errorf("%s: by lane %v", name, got)
		}
	}
}

func TestAnIdleLaneKeepsNothingOfItsRequest(t *testing.T) {
	to, err := url.Parse(api(t, hello))
	if err != nil {
		t.Fatal(err)
	}
	l := newLanes(to, new(net.Dialer), time.Hour)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X", strings.Repeat("x", 2*mostHeadKept))
	res, err := l.roundTrip(r, now())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	if c := l.get(); c == nil || c.unlink != nil || c.head.Cap() > 0 {
		t.Errorf("the idle lane is %+v", c)
	}
}

func TestAConnectionThatEndedWhileIdleCostsNoRequest(t *testing.T) {
	ended := make(chan struct{})
	up := script(t, func(i int, c net.Conn, r *bufio.Reader) {
		hear(r)
		answer(c, fmt.Sprint("connection ", i))
		if i == 0 {
			<-ended
			c.Close()
			ended <- struct{}{}
			return
		}
		if i == 1 && hear(r) { // and then ends without an answer
			return
		}
		hear(r)
	})
	h, c := serve(t, up, generous, nil), client(t)
	get(t, c, h.url+"/")
	ended <- struct{}{}
	<-ended
	for _, want := range []string{"connection 1", "connection 2"} {
		if res, text := get(t, c, h.url+"/"); res.StatusCode != http.StatusOK || text != want {
			t.Errorf("%d %q, want %q", res.StatusCode, text, want)
		}
	}
}

func TestAnUpstreamThatAnswersOddlyIs502(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":               "",
		"not HTTP":              "hello\r\n\r\n",
		"an endless head":       "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*mostHead) + "\r\n\r\n",
		"an unasked for switch": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
	} {
		up := script(t, func(_ int, c net.Conn, r *bufio.Reader) {
			hear(r)
			_, _ = io.WriteString(c, text)
		})
		if s := status(t, client(t), serve(t, up, generous, nil).url+"/"); s != http.StatusBadGateway {
			t.Errorf("%s: status %d", name, s)
		}
	}
}

func TestEveryKindOfAnswerPasses(t *testing.T) {
	for name, text := range map[string]string{
		"with a length":   "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
		"in chunks":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n",
		"until the end":   "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc",
		"of the old kind": "HTTP/1.0 200 OK\r\n\r\nabc",
		"after hints":     "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
	} {
		up := script(t, func(_ int, c net.Conn, r *bufio.Reader) {
			hear(r)
			_, _ = io.WriteString(c, text)
		})
		h, hints := serve(t, up, generous, nil), 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil },
		})
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client(t).Do(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(got) != "abc" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if sum := res.Trailer.Get("X-Sum"); (name == "in chunks") != (sum == "6") {
			t.Errorf("%s: the trailer is %q", name, sum)
		}
		if (name == "after hints") != (hints == 1) {
			t.Errorf("%s: %d hints", name, hints)
		}
	}
}

func TestABodyThatBreaksOffLooksBroken(t *testing.T) {
	up := script(t, func(_ int, c net.Conn, r *bufio.Reader) {
		hear(r)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
	})
	res, err := client(t).Get(serve(t, up, generous, nil).url + "/")
	if err == nil {
		_, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	if err == nil {
		t.Error("a part of a body came as a whole one")
	}
}

func TestTheUpstreamHearsThatTheClientHungUp(t *testing.T) {
	for name, head := range map[string]string{"before the answer": "", "within it": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"} {
		asked, ended := make(chan struct{}), make(chan struct{})
		up := script(t, func(_ int, c net.Conn, r *bufio.Reader) {
			hear(r)
			_, _ = io.WriteString(c, head)
			close(asked)
			_, _ = r.ReadByte() // until the gateway hangs up
			close(ended)
		})
		h := serve(t, up, generous, nil)
		ctx, hangUp := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-asked
			hangUp()
		}()
		if res, err := client(t).Do(r); err == nil {
			_, _ = io.ReadAll(res.Body)
			res.Body.Close()
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the upstream heard nothing", name)
		}
	}
}

func TestIdleConnectionsAreSwept(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	l := new(lanes)
	used, unused := &lane{hangUp: func() { t.Error("closed a lane that was used") }}, &lane{hangUp: func() { ours.Close() }}
	l.put(unused)
	l.put(used)
	l.sweep()
	if got := l.get(); got != used {
		t.Error("the last lane in is not the first one out")
	}
	l.put(used)
	l.sweep()
	if _, err := theirs.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the lane that nobody used is open: %v", err)
	}
	if l.get() != used || l.get() != nil {
		t.Error("the sweep left something else than the lane that was used")
	}
}

func TestTheDeadlineIsForTheHeadAlone(t *testing.T) {
	for text, armed := range map[string]bool{"abc": true, "ab": false} { // three bytes are announced
		over := make(chan struct{})
		to, err := url.Parse(script(t, func(_ int, c net.Conn, r *bufio.Reader) {
			hear(r)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"+text)
			<-over
		}))
		if err != nil {
			t.Fatal(err)
		}
		l := newLanes(to, new(net.Dialer), time.Hour)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := l.roundTrip(r, now())
		if err != nil {
			t.Fatal(err)
		}
		if c := res.Body.(*answerBody).lane; c.armed.IsZero() == armed {
			t.Errorf("with %q of the body: deadline %v", text, c.armed)
		}
		res.Body.Close()
		close(over)
	}
}
