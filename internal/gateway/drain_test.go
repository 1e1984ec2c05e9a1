package gateway

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestDrainingEndsWhatIsInFlight(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	up := api(t, func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-release
		hello(w, r)
	})
	h := serve(t, up, generous, nil)
	c := client(t)
	if s := status(t, c, h.metrics+"/readyz"); s != http.StatusOK {
		t.Errorf("readyz before: %d", s)
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			res, text := get(t, c, h.url+"/")
			if res.StatusCode != http.StatusOK || text != "hello\n" || !res.Close {
				t.Errorf("in flight: status %d, %q, close %v", res.StatusCode, text, res.Close)
			}
		})
	}
	for range 5 {
		<-started
	}
	h.stop()
	for ready := http.StatusOK; ready != http.StatusServiceUnavailable; {
		ready = status(t, c, h.metrics+"/readyz")
	}
	if s := status(t, c, h.metrics+"/healthz"); s != http.StatusOK {
		t.Errorf("healthz while draining: %d", s)
	}
	for open := true; open; { // until the port is closed
		conn, err := net.Dial("tcp", h.Addr().String())
		if open = err == nil; open {
			conn.Close()
		}
	}
	close(release)
	all.Wait()
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
	h.ended <- nil
	if n := strings.Count(h.access.String(), "status=200"); n != 5 {
		t.Errorf("%d lines in the access log:\n%s", n, h.access)
	}
}

func TestTheDrainTimeoutCutsOffWhatDoesNotEnd(t *testing.T) {
	var asked atomic.Value
	h := serve(t, upgrader(t, &asked), generous, nil, func(o *Options) { o.Server.Timeouts.Drain = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", h.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", res, err)
	}
	h.stop()
	if _, err := in.ReadByte(); err == nil {
		t.Error("the WebSocket goes on")
	}
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
	h.ended <- nil
	if !strings.Contains(h.log.String(), "cut off") || !strings.Contains(h.access.String(), "status=101") {
		t.Errorf("the logs do not tell:\n%s\n%s", h.log, h.access)
	}
}

// Clients that ask all the time, each on a connection that it keeps while it may,
// see no request fail that the gateway took.
func TestNoRequestIsLostWhenStoppedUnderLoad(t *testing.T) {
	var reached atomic.Int64
	underLoad := make(chan struct{})
	up := api(t, func(w http.ResponseWriter, r *http.Request) {
		if reached.Add(1) == 200 {
			close(underLoad)
		}
		hello(w, r)
	})
	h := serve(t, up, "limits: [{name: a, per: address, limit: 1000000/s}]", nil, func(o *Options) { o.DrainDelay = 100 * time.Millisecond })
	var answered atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { answered.Add(askUntilClosed(t, h.Addr().String())) })
	}
	<-underLoad
	h.stop()
	all.Wait()
	if answered.Load() != reached.Load() {
		t.Errorf("%d requests reached the upstream, %d were answered", reached.Load(), answered.Load())
	}
}

// askUntilClosed asks on until the port is closed; how often it was answered.
func askUntilClosed(t *testing.T, address string) (answered int64) {
	var dialer net.Dialer
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		conn, err := dialer.DialContext(ctx, "tcp", address)
		cancel()
		if err != nil {
			return answered
		}
		in := bufio.NewReader(conn)
		for closing := false; !closing; {
			if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Errorf("a connection that may be kept was closed: %v", err)
				break
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("a request was lost: %v", err)
				break
			}
			closing = res.Close
			if _, err := in.Discard(int(res.ContentLength)); err != nil {
				t.Errorf("half an answer: %v", err)
				break
			}
			answered++
		}
		conn.Close()
	}
}
