// Package gatewaytest gives tests the program comporta, built once, and gateways
// that it runs.
package gatewaytest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// build builds the program, once for all tests of a process.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "comporta-test")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "comporta")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/comporta/comporta/cmd/comporta").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// built is the directory of the program; "" where it was not wanted.
var built string

// Run runs the tests of a package that wants the program, and removes it: what
// TestMain hands to os.Exit.
func Run(m *testing.M) int {
	defer func() {
		if built != "" {
			os.RemoveAll(built)
		}
	}()
	return m.Run()
}

// Program is the path of the program. The package's TestMain calls [Run].
func Program(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A Gateway is a comporta serve, a process of its own that ends with the test.
type Gateway struct {
	// Addr is where clients come in, Metrics and Admin where the others do; "" is
	// nowhere.
	Addr, Metrics, Admin string
	// Out and Err are what it has written so far.
	Out, Err Log

	t       testing.TB
	process *exec.Cmd
	over    chan struct{} // closed when the process has ended, and all is written
	ending  sync.Once
}

// patience is how long a gateway may take to begin, and to end.
const patience = 60 * time.Second

// Start starts one with these flags, on a free port, and waits until it serves.
func Start(t testing.TB, flags ...string) *Gateway {
	t.Helper()
	g := &Gateway{t: t, over: make(chan struct{})}
	g.process = exec.Command(Program(t), append([]string{"serve", "--listen", "127.0.0.1:0", "--drain-delay", "0s"}, flags...)...)
	g.process.Stdout = &g.Out
	tell, say := io.Pipe()
	g.process.Stderr = say
	if err := g.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.End)
	serving := make(chan struct{})
	go g.listen(tell, serving)
	go func() {
		_ = g.process.Wait()
		say.Close()
		close(g.over)
	}()
	select {
	case <-serving:
	case <-g.over:
		t.Fatalf("the gateway does not serve:\n%s", &g.Err)
	case <-time.After(patience):
		t.Fatalf("the gateway does not come to serve:\n%s", &g.Err)
	}
	return g
}

// listen keeps what the gateway says, and finds its addresses in it.
func (g *Gateway) listen(from io.Reader, serving chan struct{}) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		g.Err.Write(line)
		var said struct{ Msg, Listen, Metrics, Admin string }
		if json.Unmarshal(line, &said) == nil {
			switch said.Msg {
			case "operators may come in":
				g.Admin = said.Admin
			case "serving":
				g.Addr, g.Metrics = said.Listen, said.Metrics
				close(serving)
			}
		}
		if err != nil {
			return
		}
	}
}

// End stops it, once, and waits until it has ended.
func (g *Gateway) End() {
	g.ending.Do(func() {
		_ = g.process.Process.Signal(os.Interrupt)
		select {
		case <-g.over:
		case <-time.After(patience):
			_ = g.process.Process.Kill()
			g.t.Error("the gateway did not stop")
		}
	})
}

// A Log keeps what a process writes. It is safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
