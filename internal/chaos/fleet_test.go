package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/gatewaytest"
	"github.com/comporta/comporta/internal/redistest"
)

const (
	members = 5
	limit   = 100
	share   = (limit + members - 1) / members // of one gateway that counts by itself
)

// A year is a window that no test sees the end of.
const policy = `server: {listen: "127.0.0.1:0", metrics: "%s", upstream: "%s"}
store: {redis: {url: "%s", prefix: "%s", timeout: %v}}
identities: {address: {trusted_proxies: 127.0.0.1}}
limits:
  - {name: local, match: /local/, per: address, limit: 100/52w, algorithm: fixed_window}
  - {name: deny, match: /deny/, per: address, limit: 100/52w, algorithm: fixed_window, on_error: deny}
  - {name: allow, match: /allow/, per: address, limit: 100/52w, algorithm: fixed_window, on_error: allow}
  - {name: log, match: /log/, per: address, limit: 100/52w, algorithm: sliding_log}
  - {name: counter, match: /counter/, per: address, limit: 100/52w, algorithm: sliding_counter}
  - {name: bucket, match: /bucket/, per: address, limit: 100/52w, algorithm: token_bucket}
  - {name: small, match: /several/, per: address, limit: 100/52w, algorithm: token_bucket}
  - {name: large, match: /several/, per: {header: X-Tenant}, limit: 250/52w, algorithm: fixed_window}
  - {name: quick, match: /quick/, per: address, limit: 300/s, algorithm: fixed_window}
  - {name: lease, match: /lease/, per: address, limit: 1000/52w, algorithm: fixed_window, lease: auto}
  - {name: queue, match: /queue/, per: address, limit: 1/s burst 1, algorithm: leaky_bucket}
`

// A fleet is gateways with one policy and one store behind a load balancer.
type fleet struct {
	gateways []*gateway
	url      string       // of the load balancer
	answered atomic.Int64 // requests
	logged   int64        // of these, as far as access logs were read
	client   *http.Client
	probes   *http.Client // for health and metrics
}

type gateway struct {
	*process
	listen, metrics string // host:port
	access          string // the file of its access log
	read            int64  // so much of that has been read
}

// startFleet starts gateways on a store, and waits until all know all.
func startFleet(t testing.TB, store, prefix string, timeout time.Duration) *fleet {
	t.Helper()
	f := &fleet{
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}, Timeout: 10 * time.Second},
		probes: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2}, Timeout: patient},
	}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello\n")
	}))
	t.Cleanup(up.Close)
	t.Cleanup(f.client.CloseIdleConnections)
	t.Cleanup(f.probes.CloseIdleConnections)
	comporta := gatewaytest.Program(t)
	dir := t.TempDir()
	for i := range members {
		name := filepath.Join(dir, fmt.Sprint("gateway", i))
		g := &gateway{metrics: freeAddress(t), access: name + ".access"}
		text := fmt.Sprintf(policy, g.metrics, up.URL, store, prefix, timeout)
		if err := os.WriteFile(name+".yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		g.process = launch(t, g.access, name+".log", comporta, "serve", "-c", name+".yaml", "--drain-delay", "0s")
		f.gateways = append(f.gateways, g)
	}
	for _, g := range f.gateways {
		g.awaitServing(t)
	}
	f.await(t, 10*time.Second, fmt.Sprintf("store: up, instances %d", members))
	f.balance(t, dir)
	return f
}

// awaitServing waits until it has told where it listens.
func (g *gateway) awaitServing(t testing.TB) {
	t.Helper()
	redistest.Until(t, 10*time.Second, func() error {
		for line := range strings.Lines(g.told(t)) {
			var said struct{ Msg, Listen string }
			if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "serving" {
				g.listen = said.Listen
				return nil
			}
		}
		return fmt.Errorf("it says:\n%s", g.told(t))
	})
}

// haproxy spreads requests evenly. It sends a request again only where no
// connection was to be had, so that the gateway never saw it.
const haproxy = `global
  maxconn 2000
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  retries 2
  option redispatch 1
  http-reuse always
frontend api
  bind %s
  default_backend gateways
backend gateways
  balance roundrobin
`

// balance starts a load balancer in front of the gateways.
func (f *fleet) balance(t testing.TB, dir string) {
	t.Helper()
	listen := freeAddress(t)
	text := fmt.Sprintf(haproxy, listen)
	for i, g := range f.gateways {
		text += fmt.Sprintf("  server gateway%d %s\n", i, g.listen)
	}
	name := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, os.DevNull, name+".log", find(t, "haproxy"), "-db", "-f", name)
	redistest.Until(t, 10*time.Second, func() error {
		c, err := net.Dial("tcp", listen)
		if err != nil {
			return fmt.Errorf("%w; it says:\n%s", err, p.told(t))
		}
		return c.Close()
	})
	f.url = "http://" + listen
}

// freeAddress is one on which nobody listens now.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// await waits until /readyz of every gateway that runs says a text, and is the
// instant when the last did.
func (f *fleet) await(t testing.TB, bound time.Duration, text string) time.Time {
	t.Helper()
	for _, g := range f.gateways {
		redistest.Until(t, bound, func() error {
			said, err := f.probe(g, "/readyz")
			if err == nil && !strings.Contains(said, text) {
				err = errors.New("/readyz says " + said)
			}
			return err
		})
	}
	return time.Now()
}

// probe asks at the metrics address.
func (f *fleet) probe(g *gateway, path string) (string, error) {
	res, err := f.probes.Get("http://" + g.metrics + path)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

// A size is what the largest gateway takes.
type size struct {
	bytes      int // of memory
	goroutines int
}

func (f *fleet) size(t testing.TB) (most size) {
	t.Helper()
	for _, g := range f.gateways {
		text, err := f.probe(g, "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		most.bytes = max(most.bytes, metric(t, text, "process_resident_memory_bytes"))
		most.goroutines = max(most.goroutines, metric(t, text, "go_goroutines"))
	}
	return most
}

func metric(t testing.TB, text, name string) int {
	t.Helper()
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(v)
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
