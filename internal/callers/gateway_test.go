package callers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The policy, of several limits: each client has a key for each of its runs, so none disturbs another.
const policyFile = `server: {upstream: "http://UPSTREAM"}
identities: {api_key: {header: X-API-Key, keys: keys.yaml}}
limits:
  - {name: bucket, match: GET /bucket, per: api_key, limit: 1/s burst 2}
  - {name: window, match: GET /window, per: api_key, limit: 2/2s, algorithm: fixed_window}
  - {name: slow, match: [GET /slow, POST /slow], per: api_key, limit: 1/5s}
  - {name: hourly, match: GET /hourly, per: api_key, limit: 1/h}
  - {name: calls, match: POST /grpc.health.v1.Health/Check, per: api_key, limit: 1/s burst 2}
  - {name: hourly-calls, match: POST /grpc.health.v1.Health/List, per: api_key, limit: 1/h}
  - {name: dear, match: [GET /dear, POST /callers.Dear/Call], per: api_key, limit: 1/s burst 2, cost: 5}
  - {name: everybody, per: address, limit: 1000/s}
`

// secret is the API key of an id.
func secret(id string) string { return "secret-of-" + id }

// A gateway is a comporta serve, a process of its own.
type gateway struct {
	t       *testing.T
	addr    string
	process *exec.Cmd
	access  bytes.Buffer // its standard output, whole when it has ended
	said    journal      // its standard error
	over    chan struct{}
	ending  sync.Once
}

// journal keeps what a process writes.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// startGateway starts one in front of an upstream, for the keys of ids.
func startGateway(t *testing.T, upstream string, ids []string) *gateway {
	t.Helper()
	dir := t.TempDir()
	var keys strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&keys, "- {id: %q, key: %q}\n", id, secret(id))
	}
	for name, text := range map[string]string{"policy.yaml": strings.ReplaceAll(policyFile, "UPSTREAM", upstream), "keys.yaml": keys.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := &gateway{t: t, over: make(chan struct{})}
	g.process = exec.Command(program, "serve", "-c", filepath.Join(dir, "policy.yaml"), "--listen", "127.0.0.1:0", "--metrics", "off", "--drain-delay", "0s")
	g.process.Stdout = &g.access
	tell, say := io.Pipe()
	g.process.Stderr = say
	if err := g.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.end)
	serving := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(tell)
		for {
			line, err := lines.ReadBytes('\n')
			_, _ = g.said.Write(line)
			var said struct{ Msg, Listen string }
			if json.Unmarshal(line, &said) == nil && said.Msg == "serving" {
				serving <- said.Listen
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		_ = g.process.Wait()
		say.Close()
		close(g.over)
	}()
	select {
	case g.addr = <-serving:
	case <-g.over:
		t.Fatalf("the gateway does not serve:\n%s", &g.said)
	case <-time.After(60 * time.Second):
		t.Fatalf("the gateway does not come to serve:\n%s", &g.said)
	}
	return g
}

// end stops it, once.
func (g *gateway) end() {
	g.ending.Do(func() {
		_ = g.process.Process.Signal(os.Interrupt)
		select {
		case <-g.over:
		case <-time.After(60 * time.Second):
			_ = g.process.Process.Kill()
			g.t.Error("the gateway did not stop")
		}
	})
}

// An entry is a line of the access log.
type entry struct {
	Time    time.Time
	Us      int64
	Verdict string
	Who     string
}

// left is when the answer was done.
func (e entry) left() time.Time { return e.Time.Add(time.Duration(e.Us) * time.Microsecond) }

// log stops the gateway and reads its access log, by id.
func (g *gateway) log() map[string][]entry {
	g.t.Helper()
	g.end()
	byID := map[string][]entry{}
	for line := range bytes.Lines(g.access.Bytes()) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			g.t.Fatalf("the access log: %v in %s", err, line)
		}
		id, known := strings.CutPrefix(e.Who, "api_key:")
		if !known {
			g.t.Errorf("a request without its key: %s", line)
		}
		byID[id] = append(byID[id], e)
	}
	return byID
}
