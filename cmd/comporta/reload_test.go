package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
)

// A fileServed is comporta serve in this process, on a policy file that tests change.
type fileServed struct {
	*served
	file, url, metrics string
}

// serveFile serves a policy, which is without its server, in front of an API that
// says hello.
func serveFile(t *testing.T, policy string) *fileServed {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
	t.Cleanup(up.Close)
	s := &fileServed{file: filepath.Join(t.TempDir(), "policy.yaml")}
	s.write(t, up.URL, policy)
	s.served = serve(t, "-c", s.file, "--log", "json")
	var serving struct{ Listen, Metrics string }
	if err := json.Unmarshal([]byte(s.logged(t, `"msg":"serving"`)), &serving); err != nil {
		t.Fatal(err)
	}
	s.url, s.metrics = "http://"+serving.Listen, "http://"+serving.Metrics
	return s
}

// write puts a policy into the file as editors do.
func (s *fileServed) write(t *testing.T, upstream, policy string) {
	t.Helper()
	write(t, s.file+".new", fmt.Sprintf("server: {upstream: %q}\n%s", upstream, policy))
	rename(t, s.file+".new", s.file)
}

// await is the nth line of the log that has a text.
func (s *fileServed) await(t *testing.T, text string, nth int) (found string) {
	t.Helper()
	redistest.Until(t, 20*time.Second, func() error {
		seen := 0
		for line := range strings.Lines(s.errs.String()) {
			if strings.Contains(line, text) {
				if seen++; seen == nth {
					found = line
					return nil
				}
			}
		}
		return fmt.Errorf("no line with %q for the time no. %d:\n%s", text, nth, &s.errs)
	})
	return found
}

// fetch is a path's answer.
func fetch(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

// full is the limit that answers tell.
func (s *fileServed) full(t *testing.T) string {
	t.Helper()
	res, _ := fetch(t, s.url)
	return res.Header.Get("RateLimit-Limit")
}

// show asks with an API key: the header of the answer.
func (s *fileServed) show(t *testing.T, key string) http.Header {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-Key", key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.Header
}

func TestAChangedFileIsPutInForce(t *testing.T) {
	s := serveFile(t, "limits:\n  - {name: a, per: address, limit: 100/h}\n")
	up := upstreamIn(t, s.file)
	res, _ := fetch(t, s.url)
	if res.Header.Get("RateLimit-Limit") != "100" || res.Header.Get("RateLimit-Remaining") != "99" {
		t.Fatalf("at first: %v", res.Header)
	}
	s.write(t, up, "limits:\n  - {name: a, per: address, limit: 200/h}\n")
	s.await(t, "the policy was reloaded", 1)
	if res, _ := fetch(t, s.url); res.Header.Get("RateLimit-Limit") != "200" || res.Header.Get("RateLimit-Remaining") != "198" {
		t.Errorf("what is used stays: %v", res.Header)
	}
	sum, err := sumOf(s.file)
	if err != nil {
		t.Fatal(err)
	}
	_, metrics := fetch(t, s.metrics+"/metrics")
	for _, line := range []string{
		`comporta_config_reloads_total{result="applied"} 1`, `comporta_config_info{hash="` + short(sum) + `"} 1`,
		"comporta_config_last_reload_successful 1", `comporta_decisions_total{decision="allowed",limit="a"} 2`,
	} {
		if !strings.Contains(metrics, "\n"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if strings.Count(metrics, "comporta_config_info{") != 1 {
		t.Error("one policy is in force")
	}
}

func TestABadFileChangesNothing(t *testing.T) {
	const good = "limits:\n  - {name: a, per: address, limit: 100/h}\n"
	s := serveFile(t, good)
	up := upstreamIn(t, s.file)
	sum, err := sumOf(s.file)
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, up, "limits:\n  - {name: a, per: adress, limit: 200/h}\n  - {name: b, per: address, limit: 5/fortnight}\n")
	line := s.await(t, "a changed file cannot be used", 1)
	var told struct {
		Hash     string
		Problems []string
	}
	if err := json.Unmarshal([]byte(line), &told); err != nil || told.Hash != short(sum) || len(told.Problems) != 2 {
		t.Errorf("%v: %s", err, line)
	}
	if s.full(t) != "100" {
		t.Error("a bad file changed what is in force")
	}
	res, ready := fetch(t, s.metrics+"/readyz")
	if res.StatusCode != http.StatusOK || !strings.Contains(ready, "config: "+s.file+":3:") || !strings.Contains(ready, "1 more") || !strings.Contains(ready, short(sum)+" stays in force") {
		t.Errorf("%d %s", res.StatusCode, ready)
	}
	_, metrics := fetch(t, s.metrics+"/metrics")
	for _, line := range []string{
		`comporta_config_reloads_total{result="failed"} 1`, `comporta_config_info{hash="` + short(sum) + `"} 1`, "comporta_config_last_reload_successful 0",
	} {
		if !strings.Contains(metrics, "\n"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}

	s.ask(t) // says it again to whoever asks
	s.await(t, "a changed file cannot be used", 2)

	s.write(t, up, good)
	s.await(t, "is what is in force again", 1)
	if _, ready := fetch(t, s.metrics+"/readyz"); ready != "ready\n" {
		t.Errorf("after all is well: %s", ready)
	}
}

func TestWhatCannotChangeIsTold(t *testing.T) {
	s := serveFile(t, "limits:\n  - {name: a, per: address, limit: 100/h}\n")
	up := upstreamIn(t, s.file)
	s.write(t, up, "store: {memory: {max_keys: 5}}\nlimits:\n  - {name: a, per: address, limit: 200/h}\n")
	line := s.await(t, "restart to apply", 1)
	if !strings.Contains(line, `"words":"store"`) {
		t.Error(line)
	}
	if s.full(t) != "200" {
		t.Error("all else is applied")
	}
	s.ask(t)
	s.await(t, "no file has changed", 1)
	s.waits(t, "ready\nrestart to apply: store\n", 1)

	s.write(t, up, "limits: wrong\n") // which does not come in force
	s.await(t, "a changed file cannot be used", 1)
	if _, ready := fetch(t, s.metrics+"/readyz"); !strings.HasSuffix(ready, "\nrestart to apply: store\n") {
		t.Errorf("beside a wrong file: %s", ready)
	}

	s.write(t, up, "store: {memory: {max_keys: 5}}\nsecret_file: other.secret\nlimits:\n  - {name: a, per: address, limit: 300/h}\n")
	s.await(t, "the policy was reloaded", 2)
	s.waits(t, "ready\nrestart to apply: store, secret_file\n", 2)

	s.write(t, up, "limits:\n  - {name: a, per: address, limit: 300/h}\n")
	s.await(t, "the policy was reloaded", 3)
	s.waits(t, "ready\n", 0)
}

// waits awaits what /readyz tells of words that take a restart to apply, and checks
// their number.
func (s *fileServed) waits(t *testing.T, readyz string, words int) {
	t.Helper()
	redistest.Until(t, 20*time.Second, func() error {
		if _, ready := fetch(t, s.metrics+"/readyz"); ready != readyz {
			return fmt.Errorf("%q, want %q", ready, readyz)
		}
		return nil
	})
	_, metrics := fetch(t, s.metrics+"/metrics")
	if line := fmt.Sprintf("\ncomporta_config_waiting_words %d\n", words); !strings.Contains(metrics, line) {
		t.Errorf("the metrics lack %s", line)
	}
}

// ask sends SIGHUP, for which the gateway listens by now.
func (s *fileServed) ask(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// upstreamIn is the upstream that a policy file names.
func upstreamIn(t *testing.T, file string) string {
	t.Helper()
	cfg, err := load(file, &streams{Err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Server.Upstream.String()
}

// A file of keys is read again when it changes, and a bad one leaves the keys as
// they were.
func TestKeysAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys.yaml")
	write(t, keys, "- {id: acme, key: a-long-key-of-acme-1234}\n")
	s := serveFile(t, fmt.Sprintf("identities: {api_key: {header: X-API-Key, keys: %q}}\nlimits:\n  - {name: a, per: api_key, limit: 100/h}\n", keys))
	limited := func(key string) bool { return s.show(t, key).Get("RateLimit-Limit") == "100" }
	if !limited("a-long-key-of-acme-1234") || limited("a-long-key-of-beta-1234") {
		t.Error("at first: one key is known")
	}
	write(t, keys, "- {id: acme, key: a-long-key-of-beta-1234}\n")
	s.await(t, "a file was reloaded", 1)
	if limited("a-long-key-of-acme-1234") || !limited("a-long-key-of-beta-1234") {
		t.Error("after a change: the other one is")
	}
	write(t, keys, "- {id: acme, kee: a-long-key-of-gamma-123}\n")
	line := s.await(t, "a changed file cannot be used", 1)
	if !limited("a-long-key-of-beta-1234") || strings.Contains(line, "gamma") {
		t.Errorf("after a mistake: %s", line)
	}
	_, metrics := fetch(t, s.metrics+"/metrics")
	if !strings.Contains(metrics, "\ncomporta_credentials_failed_total{source=\"api_key\"} 2\n") {
		t.Error("credentials that prove nothing are not counted")
	}
	if s.end(t); !strings.Contains(s.out.String(), `"who":"api_key:acme"`) || strings.Contains(s.out.String(), "a-long-key") {
		t.Errorf("the access log:\n%s", &s.out)
	}
}

// TestAPolicyWaitsForItsFiles: files are written one after another, in any order.
func TestAPolicyWaitsForItsFiles(t *testing.T) {
	const policy = "identities: {api_key: {header: X-API-Key, keys: %q}}\nplans: {%s: {a: 50/h}}\nlimits:\n  - {name: a, per: [api_key, address], limit: %d/h}\n"
	keys, others := filepath.Join(t.TempDir(), "keys.yaml"), filepath.Join(t.TempDir(), "others.yaml")
	write(t, keys, "- {id: acme, key: a-long-key-of-acme-1234, plan: pro}\n")
	s := serveFile(t, fmt.Sprintf(policy, keys, "pro", 100))
	up := upstreamIn(t, s.file)

	s.write(t, up, fmt.Sprintf(policy, keys, "gold", 200))
	if line := s.await(t, "a changed file cannot be used", 1); !strings.Contains(line, "no plan") || s.full(t) != "100" {
		t.Errorf("a plan that keys have is gone: %s", line)
	}
	write(t, keys, "- {id: acme, key: a-long-key-of-acme-1234, plan: gold}\n")
	s.await(t, "the policy was reloaded", 1)
	if full := s.full(t); full != "200" {
		t.Errorf("after the keys, the limit is %s", full)
	}

	// The next file comes as soon as it is missed, before its directory is watched.
	s.errs.when("cannot read "+others, func() {
		if err := os.WriteFile(others, []byte("- {id: acme, key: a-long-key-of-acme-1234}\n"), 0o600); err != nil {
			t.Error(err)
		}
	})
	s.write(t, up, fmt.Sprintf(policy, others, "gold", 300))
	if line := s.await(t, "a changed file cannot be used", 2); !strings.Contains(line, "cannot read "+others) {
		t.Errorf("a file that is not there: %s", line)
	}
	s.await(t, "the policy was reloaded", 2)
	if full := s.full(t); full != "300" {
		t.Errorf("with the other keys, the limit is %s", full)
	}
}

func TestAFileThatWasCreatedHasNotChanged(t *testing.T) {
	s := serveFile(t, "limits:\n  - {name: a, per: address, limit: 100/h, on_limit: mark}\n")
	s.write(t, upstreamIn(t, s.file), "limits: wrong\n")
	s.await(t, "a changed file cannot be used", 1) // the files have been looked at
	if strings.Contains(s.errs.String(), "reloaded") {
		t.Errorf("nothing has changed:\n%s", &s.errs)
	}
}

// A file that only a whole policy reads brings the policy file along as it has
// become: what is wrong with that is told of it, and nothing runs under another's hash.
func TestAMarksSecretThatChanges(t *testing.T) {
	const limits = "limits:\n  - {name: a, per: address, limit: %s, on_limit: mark}\n"
	s := serveFile(t, fmt.Sprintf(limits, "100/h"))
	up := upstreamIn(t, s.file)
	s.write(t, up, fmt.Sprintf(limits, "wrong"))
	s.await(t, "a changed file cannot be used", 1)
	write(t, filepath.Join(filepath.Dir(s.file), "marks.secret"), strings.Repeat("ab", 32))
	s.write(t, up, fmt.Sprintf(limits, "200/h"))
	line := s.await(t, "the policy was reloaded", 1)
	if sum, err := sumOf(s.file); err != nil || !strings.Contains(line, short(sum)) || s.full(t) != "200" {
		t.Errorf("in force is %s: %s", s.full(t), line)
	}
	for line := range strings.Lines(s.errs.String()) {
		if strings.Contains(line, "cannot be used") && strings.Contains(line, "marks.secret") {
			t.Errorf("the secret is blamed for the policy: %s", line)
		}
	}
}
