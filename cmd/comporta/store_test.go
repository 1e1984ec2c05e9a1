package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
)

// A served is a gateway that runs in this process.
type served struct {
	out, errs lines
	ended     chan int
	stop      context.CancelFunc
}

// lines are written to by the gateway and read by the test meanwhile.
type lines struct {
	mu     sync.Mutex
	text   strings.Builder
	signal string // at the first line that has it,
	act    func() // this is done, and then the writer goes on
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.act != nil && strings.Contains(string(p), l.signal) {
		l.act()
		l.act = nil
	}
	return l.text.Write(p)
}

// when lets the writer of a text do something before it goes on.
func (l *lines) when(text string, act func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signal, l.act = text, act
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serve runs comporta serve until the test ends.
func serve(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &served{ended: make(chan int, 1), stop: stop}
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--drain-delay", "0s"}, args...)
	go func() { s.ended <- run(ctx, args, &streams{strings.NewReader(""), &s.out, &s.errs}) }()
	t.Cleanup(func() { s.end(t) })
	return s
}

// end stops it: its exit code.
func (s *served) end(t *testing.T) int {
	t.Helper()
	s.stop()
	code := <-s.ended
	s.ended <- code
	return code
}

// logged waits for a line in the log that has a text, and is that line.
func (s *served) logged(t *testing.T, text string) (found string) {
	t.Helper()
	redistest.Until(t, 20*time.Second, func() error {
		for line := range strings.Lines(s.errs.String()) {
			if strings.Contains(line, text) {
				found = line
				return nil
			}
		}
		return fmt.Errorf("no line with %q:\n%s", text, &s.errs)
	})
	return found
}

// url is where clients come in.
func (s *served) url(t *testing.T) string {
	t.Helper()
	var serving struct{ Listen string }
	if err := json.Unmarshal([]byte(s.logged(t, `"msg":"serving"`)), &serving); err != nil {
		t.Fatal(err)
	}
	return "http://" + serving.Listen
}

func get(t *testing.T, url string, header ...string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(header) > 0 {
		req.Header.Set(header[0], header[1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// upstream is an API that answers anything.
func upstream(t *testing.T) string {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(up.Close)
	return up.URL
}

// Two gateways count as one, also what clients send, under one secret that is
// made by the first.
func TestGatewaysShareRedis(t *testing.T) {
	s := redistest.Start(t)
	up := upstream(t)
	flags := []string{"--upstream", up, "--limit", "4/h", "--per", "header:X-Key", "--store", s.URL()}
	one, two := serve(t, flags...), serve(t, flags...)
	a, b := one.url(t), two.url(t)
	passed := 0
	for range 4 {
		for _, url := range []string{a, b} {
			if status, _ := get(t, url, "X-Key", "hunter2"); status == http.StatusOK {
				passed++
			}
		}
	}
	if passed != 4 {
		t.Errorf("%d passed, want 4", passed)
	}
	if code := one.end(t); code != 0 {
		t.Errorf("code %d:\n%s", code, &one.errs)
	}
	for _, key := range s.MustDo("KEYS", "*").([]any) {
		if strings.Contains(key.(string), "hunter2") {
			t.Errorf("a key in the clear: %s", key)
		}
	}
}

const sharedPolicy = `server: {upstream: "%s"}
store: {redis: {url: "%s", on_error: %s}}
secret_file: "%s"
limits: [{name: a, per: {header: X-Key}, limit: 3/h}]
`

// With a secret file a gateway starts without Redis, counts by itself, and goes
// over to Redis when that is there.
func TestAGatewayStartsWithoutRedis(t *testing.T) {
	s := redistest.Start(t)
	s.Kill()
	secret := file(t, "secret", "0123456789abcdef0123456789abcdef\n")
	g := serve(t, "-c", file(t, "policy.yaml", fmt.Sprintf(sharedPolicy, upstream(t), s.URL(), "local", secret)))
	url := g.url(t)
	g.logged(t, "starting without it")
	codes := ""
	for range 4 {
		status, _ := get(t, url, "X-Key", "a")
		codes += fmt.Sprint(status, " ")
	}
	if codes != "200 200 200 429 " {
		t.Errorf("by itself: %s", codes)
	}
	s.Restart()
	g.logged(t, "the store is back")
	redistest.Until(t, 5*time.Second, func() error {
		if _, err := s.Do("GET", "comporta:secret"); err != nil {
			return err
		}
		if keys := s.MustDo("KEYS", "comporta:secret").([]any); len(keys) != 1 {
			return fmt.Errorf("the secret is not known in Redis")
		}
		return nil
	})
}

// Who counts by addresses alone has nothing to agree on, and never waits.
func TestAStartWithoutSecretsDoesNotWait(t *testing.T) {
	g := serve(t, "--upstream", upstream(t), "--limit", "3/h", "--store", "redis://127.0.0.1:1")
	url := g.url(t)
	codes := ""
	for range 4 {
		status, _ := get(t, url)
		codes += fmt.Sprint(status, " ")
	}
	if codes != "200 200 200 429 " {
		t.Errorf("by itself: %s", codes)
	}
	if said := g.errs.String(); strings.Contains(said, "waiting for it") {
		t.Errorf("it waited:\n%s", said)
	}
}

func TestAnotherSecretIsAnErrorAtTheStart(t *testing.T) {
	s := redistest.Start(t)
	up := upstream(t)
	one := serve(t, "-c", file(t, "policy.yaml", fmt.Sprintf(sharedPolicy, up, s.URL(), "local", file(t, "a", "0123456789abcdef"))))
	one.url(t)
	two := serve(t, "-c", file(t, "policy.yaml", fmt.Sprintf(sharedPolicy, up, s.URL(), "local", file(t, "b", "fedcba9876543210"))))
	if code := <-two.ended; code != 1 || !strings.Contains(two.errs.String(), "give all the same secret_file") || strings.Contains(two.errs.String(), "fedcba") {
		t.Errorf("code %d:\n%s", code, &two.errs)
	} else {
		two.ended <- code
	}
}

// Without a secret file there is no telling apart what clients send before Redis is
// there: the start waits, and then says what to do.
func TestAStartWaitsForRedis(t *testing.T) {
	s := redistest.Start(t)
	s.Kill()
	g := serve(t, "--upstream", upstream(t), "--limit", "3/h", "--per", "header:X-Key", "--store", s.URL())
	g.logged(t, "waiting for it")
	s.Restart()
	g.url(t)

	gone := serve(t, "--upstream", upstream(t), "--limit", "3/h", "--per", "header:X-Key", "--store", "redis://:hunter2@127.0.0.1:1")
	code := <-gone.ended
	gone.ended <- code
	if said := gone.errs.String(); code != 1 || !strings.Contains(said, "comporta: redis at redis://:***@127.0.0.1:1 cannot be reached: nothing listens at the address; start the server") ||
		!strings.Contains(said, "secret_file") || strings.Contains(said, "hunter2") {
		t.Errorf("code %d:\n%s", code, said)
	}
}
