package probe

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta/internal/nodetest"
)

var update = flag.Bool("update", false, "rewrite the reports on real servers; read the difference before committing it")

// Real servers, each with a limit of which is known what it is: what the probe
// says of it is a golden file, but for what another run measures otherwise.
func TestRealServers(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs nginx, HAProxy, node and npm, and a minute")
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	t.Cleanup(upstream.Close) // once the parallel ones are through
	for _, s := range []struct {
		name  string
		start func(t *testing.T, upstream string) (url string)
	}{
		{"comporta-token-bucket", func(t *testing.T, upstream string) string {
			return startGateway(t, upstream, "5/s burst 8", "token_bucket")
		}},
		{"comporta-sliding-log", func(t *testing.T, upstream string) string { return startGateway(t, upstream, "10/2s", "sliding_log") }},
		{"nginx-limit-req", startNginx},
		{"haproxy-stick-table", startHAProxy},
		{"express-rate-limit", startExpress},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			target := Target{Method: "GET", URL: s.start(t, upstream.URL)}
			r, err := Run(t.Context(), Options{Target: target, Budget: Budget{Requests: 4000, Time: 3 * time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			var full strings.Builder
			if err := r.WriteText(&full, Screen{Width: 100}); err != nil {
				t.Fatal(err)
			}
			t.Log(full.String())
			got := stable(r)
			golden := filepath.Join("testdata", "real", s.name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("(-golden +got):\n%s", d)
			}
		})
	}
}

// stable is what every run says alike: the algorithm, the numbers to what can be
// told from outside, and the verdicts.
func stable(r *Report) string {
	var b strings.Builder
	f := r.Finding
	if len(f.Algorithms) > 0 {
		fmt.Fprintf(&b, "algorithm: %s\n", f.Algorithms[0].Algorithm)
		if f.Limit.Algorithm.Bucket() {
			fmt.Fprintf(&b, "rate: about %.0f/s\nburst: %.0f\n", f.Units.Value/f.Window.Value, f.Burst.Value)
		} else {
			fmt.Fprintf(&b, "limit: %.0f\nwindow: about %.0f s\n", f.Units.Value, f.Window.Value)
		}
	}
	if r.Ended != "" {
		fmt.Fprintf(&b, "ended early: %s\n", r.Ended)
	}
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-12s %-8s %s\n", c.Name, c.Verdict, digits.ReplaceAllString(c.Seen, "N"))
	}
	return b.String()
}

var digits = regexp.MustCompile(`[0-9]+(\.[0-9]+)?(ms|µs|m|s)?([0-9.]+s)?`)

func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// launch starts a program that ends with the test, and waits until it answers.
func launch(t *testing.T, addr string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 500 {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return "http://" + addr + "/"
		}
		select {
		case <-t.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("%s does not answer: %s", name, &said)
	return ""
}

func startGateway(t *testing.T, upstream, limit, algorithm string) string {
	program := filepath.Join(t.TempDir(), "comporta")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/comporta").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	addr := free(t)
	return launch(t, addr, program, "serve", "--upstream", upstream, "--limit", limit, "--algorithm", algorithm, "--listen", addr, "--metrics", "off", "--no-access-log")
}

func startNginx(t *testing.T, upstream string) string {
	dir, addr := t.TempDir(), free(t)
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("  %s_temp_path %s/%s;\n", kind, dir, kind)
	}
	file := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`daemon off; master_process off; worker_processes 1; pid %s/pid; error_log stderr emerg;
events { worker_connections 1024; }
http {
  access_log off;
%s  limit_req_zone $binary_remote_addr zone=a:1m rate=5r/s;
  limit_req_status 429;
  server { listen %s; location / { limit_req zone=a burst=7 nodelay; proxy_pass %s; } }
}
`, dir, temp, addr, upstream)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return launch(t, addr, tool("nginx"), "-p", dir, "-c", file, "-e", "stderr")
}

func startHAProxy(t *testing.T, upstream string) string {
	addr := free(t)
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	text := fmt.Sprintf(`global
  maxconn 1000
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend api
  bind %s
  stick-table type ip size 1k expire 60s store http_req_rate(2s)
  http-request track-sc0 src
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 10 }
  default_backend upstream
backend upstream
  server upstream %s
`, addr, strings.TrimPrefix(upstream, "http://"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return launch(t, addr, tool("haproxy"), "-db", "-f", file)
}

// tool finds a program that Debian keeps out of a user's path.
func tool(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return "/usr/sbin/" + name
}

func startExpress(t *testing.T, _ string) string {
	dir := nodetest.Dir(t, "testdata/express")
	cmd := exec.Command("node", "server.js", "10", "2000")
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://127.0.0.1:" + strings.TrimSpace(port) + "/"
}
