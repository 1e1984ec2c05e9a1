package siege

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is the command, built once.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "siege")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "comporta")
	build := exec.Command("go", "build", "-o", program, "github.com/comporta/comporta/cmd/comporta")
	build.Stderr = os.Stderr
	code := 1
	if err := build.Run(); err == nil {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// A fort is a gateway under attack: a process of its own in front of an API of
// the test's. What it writes is kept.
type fort struct {
	t       *testing.T
	dir     string
	addr    string // of clients
	metrics string
	admin   string // "" without administration
	process *exec.Cmd
	out     *log
	err     *log
	ended   bool
	over    chan struct{} // closed when the process has ended
}

// log keeps what a process writes.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// raise starts a gateway on a policy, whose UPSTREAM stands for the API, with the
// files beside it.
func raise(t *testing.T, policy string, files map[string]string, api http.Handler) *fort {
	t.Helper()
	upstream := newAPI(t, api)
	f := &fort{t: t, dir: t.TempDir(), out: new(log), err: new(log)}
	files["policy.yaml"] = strings.ReplaceAll(policy, "UPSTREAM", "http://"+upstream)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.process = exec.Command(program, "serve", "-c", filepath.Join(f.dir, "policy.yaml"), "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--drain-delay", "0s")
	f.process.Stdout = f.out
	tell, say := io.Pipe()
	f.process.Stderr = say
	if err := f.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.end)
	serving := make(chan struct{})
	go f.listen(tell, serving)
	ended := make(chan struct{})
	go func() {
		_ = f.process.Wait()
		say.Close()
		close(ended)
	}()
	f.over = ended
	select {
	case <-serving:
	case <-ended:
		t.Fatalf("the gateway does not serve:\n%s", f.err)
	case <-time.After(60 * time.Second):
		t.Fatalf("the gateway does not come to serve:\n%s", f.err)
	}
	return f
}

// listen keeps what the gateway says, and finds its addresses in it.
func (f *fort) listen(from io.Reader, serving chan struct{}) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		f.err.Write(line)
		var said struct{ Msg, Listen, Metrics, Admin string }
		if json.Unmarshal(line, &said) == nil {
			switch said.Msg {
			case "operators may come in":
				f.admin = said.Admin
			case "serving":
				f.addr, f.metrics = said.Listen, said.Metrics
				close(serving)
			}
		}
		if err != nil {
			return
		}
	}
}

// end stops the gateway, once.
func (f *fort) end() {
	if f.ended {
		return
	}
	f.ended = true
	_ = f.process.Process.Signal(os.Interrupt)
	select {
	case <-f.over:
	case <-time.After(60 * time.Second):
		_ = f.process.Process.Kill()
		f.t.Error("the gateway did not stop")
	}
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
	c, err := d.Dial("tcp", f.addr)
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
	r, err := http.Get("http://" + f.metrics + "/metrics")
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
		r, err := http.NewRequest("GET", "http://"+f.admin+path, nil)
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
