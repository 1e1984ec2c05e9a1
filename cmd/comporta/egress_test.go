package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
)

// startEgress starts a gateway to an API, and is where programs call it.
func startEgress(t *testing.T, program, file string) (p *process, url string) {
	t.Helper()
	p = launch(t, program, "egress", "-c", file)
	var said struct{ Listen string }
	if err := json.Unmarshal([]byte(awaitLine(t, p.errs, "egress is listening")), &said); err != nil {
		t.Fatal(err)
	}
	return p, "http://" + said.Listen
}

// Two instances share one quota through Redis, whatever the programs do.
func TestEgressSharesAQuota(t *testing.T) {
	var came atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came.Add(1) }))
	defer api.Close()
	server := redistest.StartOwn(t)
	file := filepath.Join(t.TempDir(), "egress.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nmetrics: off\nstore: {redis: {url: %q, timeout: 1s}}\napis: [{name: pay, path: /pay, upstream: %q, limit: 10/s burst 5}]\n", server.URL(), api.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := build(t)
	one, first := startEgress(t, program, file)
	two, second := startEgress(t, program, file)
	began := time.Now()
	var programs sync.WaitGroup
	for i := range 20 {
		programs.Go(func() {
			resp, err := http.Get([]string{first, second}[i%2] + "/pay/x")
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Error(resp.Status)
			}
		})
	}
	programs.Wait()
	// Five at once, and then ten a second.
	if took := time.Since(began); took < 1500*time.Millisecond || came.Load() != 20 {
		t.Errorf("%d passed in %v", came.Load(), took)
	}
	one.end(t)
	two.end(t)
}

// While Redis is away a gateway keeps the limit by itself, as on_error says unless told
// otherwise. It says so once, ends in order, and no key is in what it writes.
func TestEgressOutlivesItsRedis(t *testing.T) {
	var came atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") == "Bearer hush-hush" {
			came.Add(1)
		}
	}))
	defer api.Close()
	server := redistest.StartOwn(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"egress.yaml": fmt.Sprintf("listen: 127.0.0.1:0\nmetrics: off\nstore: {redis: {url: %q, timeout: 100ms}}\napis: [{name: pay, path: /pay, upstream: %q, limit: 5/h burst 5, max_wait: 1s, headers: {Authorization: {file: api.key}}}]\n", server.URL(), api.URL),
		"api.key":     "Bearer hush-hush\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, url := startEgress(t, build(t), filepath.Join(dir, "egress.yaml"))
	var codes []int
	call := func() {
		resp, err := http.Get(url + "/pay/x?token=hush-hush")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		codes = append(codes, resp.StatusCode)
	}
	call()
	server.Kill()
	for range 6 {
		call()
	}
	// One by Redis; then five by the gateway, which counts anew.
	if want := []int{200, 200, 200, 200, 200, 200, 429}; !slices.Equal(codes, want) || came.Load() != 6 {
		t.Errorf("%v, %d with the key; want %v", codes, came.Load(), want)
	}
	out, errs := p.end(t)
	if strings.Count(errs, "the store fails") != 1 || !strings.Contains(errs, "egress has stopped") || strings.Contains(out+errs, "hush") {
		t.Errorf("%s\n%s", out, errs)
	}
	for line := range strings.Lines(errs) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

func TestEgressCheck(t *testing.T) {
	dir := t.TempDir()
	good, bad, keyless := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "keyless.yaml")
	for file, text := range map[string]string{
		good:    `apis: [{name: pay, path: /pay, upstream: "https://api.example.com"}]`,
		bad:     `apis: [{name: pay, path: /pay, upstream: "https://api.example.com", limits: 5/s}]`,
		keyless: `apis: [{name: pay, path: /pay, upstream: "https://api.example.com", headers: {Authorization: {file: no.key}}}]`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		file string
		code int
		out  string
		errs string
	}{
		{good, exitOK, "max_waiters    1000", ""},
		{bad, exitFailed, "", "bad.yaml:1:69: unknown word \"limits\""},
		{keyless, exitFailed, "from ", "api pay, header Authorization: open "},
		{filepath.Join(dir, "none.yaml"), exitFailed, "", "cannot read"},
	} {
		var out, errs strings.Builder
		code := run(t.Context(), []string{"egress", "-c", c.file, "--check"}, &streams{nil, &out, &errs})
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("%s: %d\n%s\n%s", c.file, code, &out, &errs)
		}
	}
}
