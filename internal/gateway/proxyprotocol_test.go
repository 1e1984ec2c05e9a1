package gateway

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

func loopback(o *Options) {
	o.Server.ProxyProtocol = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}

// begin connects, says something first, asks, and is the answer's status and who
// the upstream was told has asked; "" where there was no answer.
func begin(t *testing.T, h *house, words string, over func(net.Conn) net.Conn) (status int, client string) {
	t.Helper()
	c, err := net.Dial("tcp", h.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if over != nil {
		if _, err := io.WriteString(c, words); err != nil {
			t.Fatal(err)
		}
		c, words = over(c), ""
	}
	// At once: an answer to bad words ends the connection, and what is sent after
	// it may reset the connection before the answer is read.
	if _, err := io.WriteString(c, words+"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		return 0, ""
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body) // of a bad request the connection may be reset
	return res.StatusCode, string(text)
}

// whoAsked is an API that answers with who it was told has asked.
func whoAsked(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-For"))
}

// v2 is a header of version 2.
func v2(t *testing.T, command proxyproto.ProtocolVersionAndCommand, from string) string {
	t.Helper()
	source, destination := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)), net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from))
	h := proxyproto.HeaderProxyFromAddrs(2, source, destination)
	h.Command = command
	text, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTrustedPeersSayForWhomTheySpeak(t *testing.T) {
	h := serve(t, api(t, whoAsked), generous, nil, loopback)
	for name, test := range map[string]struct {
		words  string
		status int
		client string
	}{
		"version 1":               {"PROXY TCP4 203.0.113.7 192.0.2.1 4000 443\r\n", 200, "203.0.113.7"},
		"version 1, IPv6":         {"PROXY TCP6 2001:db8::7 2001:db8::1 4000 443\r\n", 200, "2001:db8::7"},
		"version 1, unknown":      {"PROXY UNKNOWN\r\n", 200, "127.0.0.1"},
		"version 2":               {v2(t, proxyproto.PROXY, "203.0.113.8:4000"), 200, "203.0.113.8"},
		"version 2, IPv6":         {v2(t, proxyproto.PROXY, "[2001:db8::8]:4000"), 200, "2001:db8::8"},
		"version 2, local":        {v2(t, proxyproto.LOCAL, "203.0.113.9:4000"), 200, "127.0.0.1"},
		"nothing":                 {"", 0, ""},
		"nonsense":                {"PROXY TCP4 203.0.113.7\r\n", 0, ""},
		"twice":                   {"PROXY TCP4 203.0.113.7 192.0.2.1 4000 443\r\nPROXY TCP4 203.0.113.8 192.0.2.1 4000 443\r\n", 400, ""},
		"a Unix socket's address": {"\r\n\r\n\x00\r\nQUIT\n\x21\x31\x00\xd8/run/x" + strings.Repeat("\x00", 210), 200, "127.0.0.1"},
	} {
		if status, client := begin(t, h, test.words, nil); status != test.status || status == 200 && client != test.client {
			t.Errorf("%s: %d %q, want %d %q", name, status, client, test.status, test.client)
		}
	}
	if lines := strings.Count(h.access.String(), "client=203.0.113.7 "); lines != 1 {
		t.Errorf("the access log has the client of version 1 %d times:\n%s", lines, h.access)
	}
}

func TestStrangersSpeakForNobody(t *testing.T) {
	h := serve(t, api(t, whoAsked), generous, nil, func(o *Options) {
		o.Server.ProxyProtocol = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	})
	if status, client := begin(t, h, "", nil); status != 200 || client != "127.0.0.1" {
		t.Errorf("without the words: %d %q", status, client)
	}
	for _, words := range []string{"PROXY TCP4 203.0.113.7 192.0.2.1 4000 443\r\n", v2(t, proxyproto.PROXY, "203.0.113.8:4000")} {
		if status, client := begin(t, h, words, nil); status != 400 {
			t.Errorf("with them: %d %q", status, client)
		}
	}
}

func TestWhoSpeaksForClientsMayChange(t *testing.T) {
	up := api(t, whoAsked)
	h := serve(t, up, generous, nil)
	next := h.next(t, h.store, nil, up, generous)
	next.Server.ProxyProtocol = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	if _, err := h.Replace(next); err != nil {
		t.Fatal(err)
	}
	if status, client := begin(t, h, "PROXY TCP4 203.0.113.7 192.0.2.1 4000 443\r\n", nil); status != 200 || client != "203.0.113.7" {
		t.Errorf("%d %q", status, client)
	}
}

// Behind the words there may be TLS, and bounds hold as for others.
func TestTheProxyProtocolGoesBeforeTLS(t *testing.T) {
	files := certificate(t, t.TempDir(), "a.example")
	h := serve(t, api(t, whoAsked), generous, nil, loopback, func(o *Options) { o.Server.TLS = files })
	over := func(c net.Conn) net.Conn { return tls.Client(c, &tls.Config{InsecureSkipVerify: true}) }
	if status, client := begin(t, h, "PROXY TCP4 203.0.113.7 192.0.2.1 4000 443\r\n", over); status != 200 || client != "203.0.113.7" {
		t.Errorf("%d %q", status, client)
	}
}

// Who connects and says nothing is cut off like one who sends no header.
func TestAPeerThatSaysNothingIsCutOff(t *testing.T) {
	h := serve(t, api(t, whoAsked), generous, nil, loopback, func(o *Options) { o.Server.Timeouts.ReadHeader = 50 * time.Millisecond })
	c, err := net.Dial("tcp", h.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if n, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}

// Whoever wonders why a peer gets no answer finds it in the log.
func TestAPeerThatBeginsOtherwiseIsToldOf(t *testing.T) {
	h := serve(t, api(t, whoAsked), generous, nil, loopback)
	for range 2 {
		if status, _ := begin(t, h, "", nil); status != 0 {
			t.Errorf("it is answered with %d", status)
		}
	}
	if n := strings.Count(h.log.String(), "W-PROXY-SILENT"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// A conn counts in the states of its listener whatever is around it.
func TestProxiedConnectionsAreCounted(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	h := serve(t, api(t, func(http.ResponseWriter, *http.Request) { close(begun); <-goOn }), generous, nil, loopback)
	var status atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s, _ := begin(t, h, "PROXY TCP4 203.0.113.7 192.0.2.1 4000 443\r\n", nil)
		status.Store(int64(s))
	}()
	<-begun
	if n := h.listener.count(http.StateActive); n != 1 {
		t.Errorf("%d connections are active", n)
	}
	close(goOn)
	<-ended
	if status.Load() != 200 {
		t.Errorf("status %d", status.Load())
	}
}
