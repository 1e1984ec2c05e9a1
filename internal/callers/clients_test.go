package callers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/internal/nodetest"
)

// A query is what a client is to do: a number of equal calls.
type query struct {
	// settings: plain is the client out of the box; bare has its retries on, if that
	// takes a word, and no more; tuned is as docs/clients.md advises. Of ours, blind
	// does not look at what remains, so that it is refused.
	settings     string
	method, path string
	addr         string // of the tap, or of the gateway for gRPC
	key          string
	calls        int
	together     bool      // the calls are made at once, not in turn
	attempts     *attempts // told by those that no tap can read
}

// An outcome is what came of it.
type outcome struct {
	statuses []int           // of each call in the end
	timers   []time.Duration // long ones that were set, by the clients that tell
	stopped  bool            // it was still at it when it was stopped
	err      error           // what should not have happened
}

// A caller is a client in the matrix.
type caller struct {
	name, version string
	setup         string // what is to be set up, in words
	lang, source  string // of the settings that are advised: the file between its marks
	grpc          bool
	call          func(context.Context, query) outcome
}

func callers(t *testing.T) []caller {
	dir := nodetest.Dir(t, "testdata")
	npm := locked(t)
	return []caller{
		{name: "curl", version: strings.Fields(said(t, "curl", "--version"))[1], setup: "`--fail`, `--retry-max-time`",
			lang: "sh", source: "testdata/curl.sh", call: script(dir, "/bin/sh", "curl.sh")},
		{name: "urllib3", version: said(t, python, "-c", "import urllib3; print(urllib3.__version__)"), setup: "a `Retry` that bounds the wait",
			lang: "python", source: "testdata/with_urllib3.py", call: script(dir, python, "with_urllib3.py")},
		{name: "got", version: npm("got"), setup: "`maxRetryAfter`", lang: "js", source: "testdata/got.js", call: script(dir, "node", "got.js")},
		{name: "axios-retry", version: npm("axios-retry"), setup: "a delay, a condition that bounds the wait",
			lang: "js", source: "testdata/axios.js", call: script(dir, "node", "axios.js")},
		{name: "undici", version: npm("undici"), setup: "a `retry` of your own", lang: "js", source: "testdata/undici.js", call: script(dir, "node", "undici.js")},
		{name: "go-retryablehttp", version: module(t, "github.com/hashicorp/go-retryablehttp"), setup: "a `CheckRetry` that bounds the wait",
			lang: "go", source: "clients_test.go", call: retryable},
		{name: "grpc-go", version: module(t, "google.golang.org/grpc"), setup: "a `retryPolicy`, a deadline", lang: "go", source: "grpc_test.go", grpc: true, call: serviceConfig},
		{name: "package client", setup: "nothing", call: ours},
		{name: "package grpcclient", setup: "nothing", grpc: true, call: oursOverGRPC},
	}
}

// locked are the versions in the lock of npm.
func locked(t *testing.T) func(name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	return func(name string) string { return lock.Packages["node_modules/"+name].Version }
}

// module is the version of a Go module.
func module(t *testing.T, path string) string {
	t.Helper()
	return strings.TrimPrefix(said(t, "go", "list", "-m", "-f", "{{.Version}}", path), "v")
}

// A sender is a client in this process.
type sender interface {
	Do(*http.Request) (*http.Response, error)
}

// inProcess makes the calls of a query.
func inProcess(ctx context.Context, q query, c sender) outcome {
	return q.each(func() (int, error) {
		req, err := http.NewRequestWithContext(ctx, q.method, "http://"+q.addr+q.path, nil)
		if err != nil {
			return 0, err
		}
		req.Header.Set("X-API-Key", q.key)
		res, err := c.Do(req)
		if err != nil {
			if ctx.Err() != nil {
				err = errStopped
			}
			return 0, err
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode, nil
	})
}

var errStopped = errors.New("the test has stopped it")

// each makes the calls, in turn or together. A call returns its status in the end,
// or errStopped.
func (q query) each(call func() (int, error)) (o outcome) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for range q.calls {
		all.Go(func() {
			status, err := call()
			mu.Lock()
			defer mu.Unlock()
			switch err {
			case nil:
				o.statuses = append(o.statuses, status)
			case errStopped:
				o.stopped = true
			default:
				o.err = err
			}
		})
		if !q.together {
			all.Wait()
			if o.stopped || o.err != nil {
				return o
			}
		}
	}
	all.Wait()
	return o
}

// A standard is retryablehttp's client as a sender.
type standard struct{ *retryablehttp.Client }

func (s standard) Do(r *http.Request) (*http.Response, error) {
	req, err := retryablehttp.FromRequest(r)
	if err != nil {
		return nil, err
	}
	return s.Client.Do(req)
}

func retryable(ctx context.Context, q query) outcome {
	c := retryablehttp.NewClient()
	if q.settings == "tuned" {
		c = patientClient()
	}
	c.Logger = nil
	defer c.HTTPClient.CloseIdleConnections()
	return inProcess(ctx, q, standard{c})
}

// as documented
func patientClient() *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.RetryMax = 5
	// The last answer comes back as it is, not as an error without it.
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	// Told to wait longer than a minute, it gives the 429 back.
	c.CheckRetry = func(ctx context.Context, resp *http.Response, err error) (bool, error) {
		if resp != nil {
			if told, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && told > 60 {
				return false, nil
			}
		}
		return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	}
	return c
}

// end

func ours(ctx context.Context, q query) outcome {
	own := http.DefaultTransport.(*http.Transport).Clone()
	defer own.CloseIdleConnections()
	options := ourOptions(q)
	options.Transport = own
	return inProcess(ctx, q, &http.Client{Transport: client.New(options)})
}

func ourOptions(q query) (o client.Options) {
	switch q.settings {
	case "blind":
		o.Pace = client.Off
	case "bare":
		o.Random = func() float64 { return 0.99 } // lest by chance it looks like none
	}
	return o
}
