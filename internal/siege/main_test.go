package siege

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/gatewaytest"
)

func TestMain(m *testing.M) { os.Exit(gatewaytest.Run(m)) }

// A fort is a gateway under attack: a process of its own in front of an API of
// the test's. What it writes is kept.
type fort struct {
	*gatewaytest.Gateway
	t   *testing.T
	dir string
}

// raise starts a gateway on a policy, whose UPSTREAM stands for the API, with the
// files beside it.
func raise(t *testing.T, policy string, files map[string]string, api http.Handler) *fort {
	t.Helper()
	upstream := newAPI(t, api)
	f := &fort{t: t, dir: t.TempDir()}
	files["policy.yaml"] = strings.ReplaceAll(policy, "UPSTREAM", "http://"+upstream)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.Gateway = gatewaytest.Start(t, "-c", filepath.Join(f.dir, "policy.yaml"), "--metrics", "127.0.0.1:0")
	return f
}

func newAPI(t *testing.T, api http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: api}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return l.Addr().String()
}

// answer is what a client gets.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends one request from an address of loopback; "" is any.
func (f *fort) ask(from string, lines string) answer {
	f.t.Helper()
	c := f.dial(from)
	defer c.Close()
	go io.WriteString(c, wire(lines)) // who is refused need not have sent all
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		f.t.Fatalf("no answer to %q: %v", strings.SplitN(lines, "\n", 2)[0], err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer{r.StatusCode, r.Header, string(body)}
}

// wire is a request as it goes over the wire: of its lines the first may lack its
// protocol, and what follows an empty line is its body.
func wire(lines string) string {
	head, body, _ := strings.Cut(lines, "\n\n")
	first, rest, _ := strings.Cut(head, "\n")
	out := first + " HTTP/1.1\r\nHost: api.example.com\r\n"
	if rest != "" {
		out += strings.ReplaceAll(rest, "\n", "\r\n") + "\r\n"
	}
	if body != "" {
		out += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	return out + "\r\n" + body
}

func (f *fort) dial(from string) net.Conn {
	f.t.Helper()
	d := net.Dialer{Timeout: 10 * time.Second}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	c, err := d.Dial("tcp", f.Addr)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// statuses are how many of n requests were answered with each status. They go over
// four connections, many at once on each.
func (f *fort) statuses(from string, n int, request func(i int) string) map[int]int {
	f.t.Helper()
	const conns, batch = 4, 50
	var mu sync.Mutex
	all := map[int]int{}
	var sending sync.WaitGroup
	for part := range conns {
		c := f.dial(from)
		sending.Go(func() {
			defer c.Close()
			answers := bufio.NewReaderSize(c, 64<<10)
			for at := part * batch; at < n; at += conns * batch {
				var text strings.Builder
				here := min(batch, n-at)
				for i := range here {
					text.WriteString(wire(request(at + i)))
				}
				sent := make(chan error, 1)
				go func() { _, err := io.WriteString(c, text.String()); sent <- err }()
				for range here {
					r, err := http.ReadResponse(answers, nil)
					if err != nil {
						f.t.Errorf("an answer is missing: %v", err)
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					mu.Lock()
					all[r.StatusCode]++
					mu.Unlock()
				}
				if err := <-sent; err != nil {
					f.t.Error(err)
					return
				}
			}
		})
	}
	sending.Wait()
	return all
}

// scrape is the page of metrics.
func (f *fort) scrape() string {
	f.t.Helper()
	r, err := http.Get("http://" + f.Metrics + "/metrics")
	if err != nil {
		f.t.Fatal(err)
	}
	defer r.Body.Close()
	page, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(page)
}

// operators are what the administration answers to who shows the token.
func (f *fort) operators(token string, paths ...string) (answers []string) {
	f.t.Helper()
	for _, path := range paths {
		r, err := http.NewRequest("GET", "http://"+f.Admin+path, nil)
		if err != nil {
			f.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			f.t.Fatal(err)
		}
		text, err := io.ReadAll(w.Body)
		w.Body.Close()
		if err != nil || w.StatusCode != http.StatusOK {
			f.t.Errorf("%s: %d %s, %v", path, w.StatusCode, text, err)
		}
		answers = append(answers, string(text))
	}
	return answers
}

// series are the names and labels of a page of metrics.
func series(page string) (out []string) {
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			out = append(out, line[:strings.LastIndexByte(line, ' ')])
		}
	}
	return out
}

// value is a metric's; −1 where it is not there.
func value(page, name string) float64 {
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			var v float64
			if _, err := fmt.Sscan(rest, &v); err == nil {
				return v
			}
		}
	}
	return -1
}
