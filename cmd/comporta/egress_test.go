package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
	server := redistest.Start(t)
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
