package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// build builds the program, as whoever runs it does.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "comporta")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// A process is a running comporta; its output is read line by line.
type process struct {
	*exec.Cmd
	out, errs *bufio.Reader
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	return launch(t, build(t), args...)
}

// launch starts a program that is built.
func launch(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(program, args...)}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out, p.errs = bufio.NewReader(out), bufio.NewReader(errs)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// awaitLine reads up to a line that has a text.
func awaitLine(t *testing.T, from *bufio.Reader, text string) string {
	t.Helper()
	var before strings.Builder
	for {
		line, err := from.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		before.WriteString(line)
		if err != nil {
			t.Fatalf("no line with %q (%v), but:\n%s", text, err, &before)
		}
	}
}

// end tells it to stop and waits for it: the rest of its output.
func (p *process) end(t *testing.T) (out, errs string) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	o, _ := io.ReadAll(p.out)
	e, _ := io.ReadAll(p.errs)
	if err := p.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, e)
	}
	return string(o), string(e)
}

func TestTheDemonstrationDoesWhatItSays(t *testing.T) {
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--drain-delay", "0s")
	first := awaitLine(t, p.out, "curl -i http://")
	url := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(first), "curl -i "))
	awaitLine(t, p.out, "curl -s ")
	metrics := strings.TrimSpace(strings.TrimPrefix(awaitLine(t, p.out, "Metrics: "), "Metrics: "))
	var codes []int
	for i := range 7 {
		res, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, res.StatusCode)
		if i == 0 && (res.Header.Get("RateLimit-Limit") != "5" || res.Header.Get("RateLimit-Remaining") != "4" || !strings.Contains(string(text), "GET /hello")) {
			t.Errorf("the first answer: %v\n%s", res.Header, text)
		}
	}
	if want := []int{200, 200, 200, 200, 200, 429, 429}; fmt.Sprint(codes) != fmt.Sprint(want) {
		t.Errorf("status %v, want %v", codes, want)
	}
	res, err := http.Get(metrics)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if !strings.Contains(string(text), `comporta_requests_total{verdict="denied"} 2`) || !strings.Contains(string(text), "comporta_store_keys 1\n") {
		t.Errorf("metrics:\n%s", text)
	}
	if out, _ := p.end(t); strings.Count(out, "msg=request") != 7 {
		t.Errorf("the access log:\n%s", out)
	}
}

func TestSIGTERMUnderLoadLosesNoRequest(t *testing.T) {
	var reached, answered atomic.Int64
	underLoad := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if reached.Add(1) == 200 {
			close(underLoad)
		}
		fmt.Fprintln(w, "hello")
	}))
	defer up.Close()
	p := start(t, "serve", "--upstream", up.URL, "--limit", "1000000/s", "--listen", "127.0.0.1:0", "--metrics", "off", "--drain-delay", "200ms")
	var serving struct{ Listen string }
	if err := json.Unmarshal([]byte(awaitLine(t, p.errs, `"msg":"serving"`)), &serving); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			c := &http.Client{Transport: transport, Timeout: 10 * time.Second}
			for {
				// A POST: net/http does not repeat it by itself when a connection breaks.
				res, err := c.Post("http://"+serving.Listen+"/", "text/plain", nil)
				if err != nil {
					if !strings.Contains(err.Error(), "connection refused") && !strings.Contains(err.Error(), "i/o timeout") {
						t.Errorf("a request was lost: %v", err)
					}
					return
				}
				text, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || string(text) != "hello\n" || res.StatusCode != http.StatusOK {
					t.Errorf("status %d, %q, %v", res.StatusCode, text, err)
				}
				answered.Add(1)
			}
		})
	}
	<-underLoad
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	awaitLine(t, p.errs, `"msg":"draining"`)
	out, errs := p.end(t) // signals again, as who stops a process and its group does
	all.Wait()
	if reached.Load() != answered.Load() || int64(strings.Count(out, `"msg":"request"`)) != answered.Load() {
		t.Errorf("%d reached the upstream, %d were answered, %d are in the access log", reached.Load(), answered.Load(), strings.Count(out, `"msg":"request"`))
	}
	if !strings.Contains(errs, `"msg":"stopped"`) {
		t.Errorf("it did not end in order:\n%s", errs)
	}
}
