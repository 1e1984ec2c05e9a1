package gateway

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const generous = "limits: [{name: a, per: address, limit: 1000/min}]"

func TestADeadUpstreamIs502AndCostsTheClientItsUnit(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(hello))
	address := up.Listener.Addr().String()
	h := serve(t, up.URL, "limits: [{name: a, per: address, limit: 5/min}]", newClock())
	c := client(t)
	if s := status(t, c, h.url+"/"); s != http.StatusOK {
		t.Fatalf("before: %d", s)
	}
	up.CloseClientConnections()
	up.Close()
	for _, remaining := range []string{"3", "2"} {
		res, text := get(t, c, h.url+"/")
		if res.StatusCode != http.StatusBadGateway || res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("dead: status %d, %s", res.StatusCode, text)
		}
		if got := res.Header.Get("RateLimit-Remaining"); got != remaining {
			t.Errorf("dead: remaining %s, want %s", got, remaining)
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("another program took the upstream's port: %v", err)
	}
	back := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(hello)}}
	back.Start()
	defer back.Close()
	if s := status(t, c, h.url+"/"); s != http.StatusOK {
		t.Errorf("back: %d", s)
	}
	log := h.log.String()
	if strings.Count(log, "the upstream cannot be reached") != 1 || strings.Count(log, "the upstream answers again") != 1 {
		t.Errorf("the log should tell each once:\n%s", log)
	}
}

func TestASlowUpstreamIs504(t *testing.T) {
	release := make(chan struct{})
	up := api(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	h := serve(t, up, generous, nil, func(o *Options) { o.Server.Timeouts.ResponseHeader = 30 * time.Millisecond })
	if res, text := get(t, client(t), h.url+"/"); res.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("status %d: %s", res.StatusCode, text)
	}
}

func TestAnswersStreamAsTheyCome(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "application/octet-stream"} {
		next := make(chan struct{})
		up := api(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			for i := range 3 {
				fmt.Fprintf(w, "data: %d\n", i)
				_ = http.NewResponseController(w).Flush()
				<-next
			}
		})
		h := serve(t, up, generous, nil)
		res, err := client(t).Get(h.url + "/events")
		if err != nil {
			t.Fatal(err)
		}
		for lines, i := bufio.NewReader(res.Body), 0; i < 3; i++ {
			line, err := lines.ReadString('\n')
			if want := fmt.Sprintf("data: %d\n", i); err != nil || line != want {
				t.Fatalf("%s: %q, %v", kind, line, err)
			}
			next <- struct{}{} // the next line is written only when this one has come through
		}
		res.Body.Close()
	}
}

// upgrader answers a request to switch protocols with 101 and then echoes lines.
func upgrader(t *testing.T, asked *atomic.Value) string {
	return api(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Header.Get("Upgrade") + "|" + r.Header.Get("Connection"))
		if r.Header.Get("Upgrade") == "" {
			hello(w, r)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		_ = rw.Flush()
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			fmt.Fprint(rw, "echo "+line)
			_ = rw.Flush()
		}
	})
}

func TestWebSocketsPass(t *testing.T) {
	var asked atomic.Value
	h := serve(t, upgrader(t, &asked), generous, nil)
	conn, err := net.Dial("tcp", h.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("RateLimit-Limit") != "1000" {
		t.Fatalf("%v, %v", res, err)
	}
	for range 3 {
		fmt.Fprintln(conn, "hi")
		if line, err := in.ReadString('\n'); line != "echo hi\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
}

func TestOtherProtocolsAreNoTunnelPastTheLimits(t *testing.T) {
	var asked atomic.Value
	h := serve(t, upgrader(t, &asked), generous, nil)
	for _, up := range []string{"h2c", "TLS/1.0", "websocket, h2c"} {
		res, _ := get(t, client(t), h.url+"/", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", up, "HTTP2-Settings", "AAMAAABkAAQAAP__")
		if res.StatusCode != http.StatusOK || asked.Load() != "|" {
			t.Errorf("%s: status %d; the upstream saw %v", up, res.StatusCode, asked.Load())
		}
	}
	conn, err := net.Dial("tcp", h.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("CONNECT: %v, %v", res, err)
	}
}

// http2Client speaks HTTP/2 only, with TLS or without.
func http2Client(t *testing.T) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	transport.Protocols.SetHTTP2(true)
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

func TestHTTP2PassesWithAndWithoutTLS(t *testing.T) {
	for _, secure := range []bool{false, true} {
		h := serve(t, api(t, hello), "limits: [{name: a, per: address, limit: 2/min}]", newClock(), func(o *Options) {
			if secure {
				o.Server.TLS = certificate(t, t.TempDir(), "first")
			}
		})
		c := http2Client(t)
		for _, want := range []int{200, 200, 429} {
			res, _ := get(t, c, h.url+"/")
			if res.ProtoMajor != 2 || res.StatusCode != want || res.Header.Get("RateLimit-Limit") != "2" {
				t.Errorf("TLS %v: HTTP/%d, status %d, want %d", secure, res.ProtoMajor, res.StatusCode, want)
			}
		}
	}
}

func TestGRPCKeepsHTTP2AndTrailersToAPlainUpstream(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Grpc-Status")
		w.Header().Set("Content-Type", "application/grpc")
		fmt.Fprintf(w, "HTTP/%d", r.ProtoMajor)
		w.Header().Set("Grpc-Status", "0")
	}))
	up.Config.Protocols = new(http.Protocols)
	up.Config.Protocols.SetUnencryptedHTTP2(true)
	up.Start()
	defer up.Close()
	h := serve(t, up.URL, generous, nil)
	res, text := do(t, http2Client(t), http.MethodPost, h.url+"/svc/Call", strings.NewReader("x"), "Content-Type", "application/grpc", "TE", "trailers")
	if text != "HTTP/2" || res.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("%d %q, trailer %v", res.StatusCode, text, res.Trailer)
	}
}

func TestBodiesOverTheBoundAre413(t *testing.T) {
	var got atomic.Int64
	up := api(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got.Store(n)
	})
	h := serve(t, up, generous, nil, func(o *Options) { o.Server.MaxBodyBytes = 1000 })
	c := client(t)
	for _, known := range []bool{true, false} {
		for _, test := range []struct{ size, want int }{{1000, 200}, {1001, 413}, {100_000, 413}} {
			var body io.Reader = bytes.NewReader(make([]byte, test.size))
			if !known {
				body = io.MultiReader(body) // whose length net/http cannot tell
			}
			got.Store(-1)
			res, text := do(t, c, http.MethodPost, h.url+"/", body)
			if known && test.want == 413 && got.Load() != -1 {
				t.Errorf("%d bytes: the upstream was asked", test.size)
			}
			if res.StatusCode != test.want {
				t.Errorf("%d bytes, length known %v: status %d, %s", test.size, known, res.StatusCode, text)
			}
			if test.want == 200 && got.Load() != int64(test.size) {
				t.Errorf("%d bytes: the upstream got %d", test.size, got.Load())
			}
		}
	}
	res, _ := get(t, c, h.url+"/", "X-Long", strings.Repeat("x", 200<<10))
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long header: %d", res.StatusCode)
	}
}

func TestTheChainOfAddressesGoesOnFromTrustedPeersOnly(t *testing.T) {
	var seen atomic.Value
	up := api(t, func(w http.ResponseWriter, r *http.Request) {
		got := map[string]string{"Host": r.Host}
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix", "X-Real-Ip", "Forwarded", "Te", "Proxy-Authorization"} {
			if v := r.Header.Values(name); len(v) > 0 {
				got[name] = strings.Join(v, "|")
			}
		}
		seen.Store(got)
	})
	sent := []string{
		"X-Forwarded-For", "9.9.9.9", "X-Forwarded-For", "203.0.113.7", "X-Forwarded-Host", "api.example", "X-Forwarded-Proto", "https",
		"X-Forwarded-Prefix", "/x", "X-Real-Ip", "203.0.113.7", "Forwarded", "for=203.0.113.7", "Proxy-Authorization", "Basic eA==",
	}
	h := serve(t, up, generous, nil)
	get(t, client(t), h.url+"/", sent...)
	want := map[string]string{"Host": h.Addr().String(), "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": h.Addr().String(), "X-Forwarded-Proto": "http"}
	if diff := cmp.Diff(want, seen.Load()); diff != "" {
		t.Errorf("from a stranger (-want +got):\n%s", diff)
	}
	if !strings.Contains(h.log.String(), "W-PROXY-UNTRUSTED") {
		t.Error("no warning of a private peer that forwards and is not trusted")
	}
	if !strings.Contains(h.access.String(), "client=127.0.0.1") {
		t.Errorf("the log has another client: %s", h.access)
	}

	h = serve(t, up, "identities: {address: {trusted_proxies: [127.0.0.1/32]}}\n"+generous, nil)
	get(t, client(t), h.url+"/", sent...)
	want = map[string]string{
		"Host": h.Addr().String(), "X-Forwarded-For": "9.9.9.9, 203.0.113.7, 127.0.0.1", "X-Forwarded-Host": "api.example",
		"X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/x", "X-Real-Ip": "203.0.113.7",
	}
	if diff := cmp.Diff(want, seen.Load()); diff != "" {
		t.Errorf("from a trusted proxy (-want +got):\n%s", diff)
	}
	h.stop()
	<-h.ended
	h.ended <- nil
	if !strings.Contains(h.access.String(), "client=203.0.113.7") {
		t.Errorf("the log has another client: %s", h.access)
	}
}
