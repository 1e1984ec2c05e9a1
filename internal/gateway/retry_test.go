package gateway

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// A request that limits let through once is not many to the upstream because the
// upstream hangs up on it while other connections are idle.
func TestARequestReachesTheUpstreamTwiceAtMost(t *testing.T) {
	const idle = 8
	for _, way := range []struct {
		name, method, field string
		tls                 bool
	}{
		{name: "by lane", method: http.MethodGet},
		{name: "not by lane", method: http.MethodPost, field: "Idempotency-Key"},
		{name: "with an upgrade", method: http.MethodGet, field: "Upgrade"},
		{name: "over TLS", method: http.MethodGet, tls: true},
	} {
		var killed atomic.Int64
		var together sync.WaitGroup
		together.Add(idle)
		up := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/kill" {
				killed.Add(1)
				panic(http.ErrAbortHandler)
			}
			together.Done()
			together.Wait()
		}))
		if way.tls {
			up.StartTLS()
		} else {
			up.Start()
		}
		u := serve(t, up.URL, generous, nil).reign.Load().upstream
		u.http1.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
		send := func(path string) error {
			r, err := http.NewRequestWithContext(t.Context(), way.method, up.URL+path, nil)
			if err != nil {
				return err
			}
			if way.field != "" {
				r.Header.Set(way.field, "x")
			}
			res, err := u.RoundTrip(r)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			_, err = io.Copy(io.Discard, res.Body)
			return err
		}
		var warm sync.WaitGroup
		for range idle {
			warm.Go(func() {
				if err := send("/"); err != nil {
					t.Errorf("%s: %v", way.name, err)
				}
			})
		}
		warm.Wait()
		if err := send("/kill"); err == nil || killed.Load() > 2 {
			t.Errorf("%s: it reached the upstream %d times, and ended with %v", way.name, killed.Load(), err)
		}
		u.http1.CloseIdleConnections()
		up.Close()
	}
}

// By itself HTTP/2 sends what an upstream says it did not do seven times.
func TestARequestReachesAnHTTP2UpstreamTwiceAtMost(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var refused atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				refuseStreams(c, &refused)
			}()
		}
	}()
	url := "https://" + l.Addr().String()
	u := serve(t, url, generous, nil).reign.Load().upstream
	u.http1.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	defer u.http1.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.RoundTrip(r); !errors.Is(err, errTwice) || refused.Load() != 2 {
		t.Errorf("it reached the upstream %d times, and ended with %v", refused.Load(), err)
	}
}

// refuseStreams speaks as much HTTP/2 (RFC 9113, 4 and 6) as refusing takes.
func refuseStreams(c net.Conn, refused *atomic.Int64) {
	const headers, reset, settings, refusedStream = 1, 3, 4, 7
	if _, err := io.ReadFull(c, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	_, _ = c.Write([]byte{3: settings, 8: 0})
	for {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		length := int64(head[0])<<16 | int64(binary.BigEndian.Uint16(head[1:]))
		if _, err := io.CopyN(io.Discard, c, length); err != nil {
			return
		}
		switch {
		case head[3] == settings && head[4] == 0:
			_, _ = c.Write([]byte{3: settings, 4: 1, 8: 0})
		case head[3] == headers:
			refused.Add(1)
			answer := append([]byte{2: 4, 3: reset, 4: 0}, head[5:]...)
			_, _ = c.Write(append(answer, 0, 0, 0, refusedStream))
		}
	}
}

func TestAStatusBelow100Is502(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} { // by lane, and not
		for _, code := range []string{"000", "001", "099", "+99"} {
			up := api(t, func(w http.ResponseWriter, _ *http.Request) {
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				fmt.Fprintf(c, "HTTP/1.1 %s x\r\nContent-Length: 2\r\n\r\nok", code)
			})
			res, text := do(t, client(t), method, serve(t, up, generous, nil).url, nil)
			if res.StatusCode != http.StatusBadGateway || res.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s, %s: %d %s", method, code, res.StatusCode, text)
			}
		}
	}
}
