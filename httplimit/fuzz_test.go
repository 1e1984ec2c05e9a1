package httplimit_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// ours are the fields of which an answer has one line at most.
var ours = []string{
	"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "Ratelimit-Policy", "Ratelimit",
	"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
	"Retry-After", "Access-Control-Expose-Headers",
}

// Whatever a client sends and a handler answers, nothing panics, no field is on
// two lines, and a problem document is JSON.
func FuzzServe(f *testing.F) {
	f.Add("GET", "/", "192.0.2.1:1", "Origin: https://a.example\nX-Forwarded-For: 1, 2", 200, "RateLimit: \"a\";r=1\nRateLimit: \"b\";r=2;t=1")
	f.Add("OPTIONS", "/a%2f..//b", "@", "Origin: x\nAccess-Control-Request-Method: y", 503, "Retry-After: 1\nRetry-After: Mon, 30 Nov 2026 00:00:04 GMT")
	f.Add("HEAD", "/%", "[::1%lo]:x", "Content-Type: application/grpc", 304, "Access-Control-Allow-Origin: *\nAccess-Control-Expose-Headers: a,,b")
	f.Add("POST", "*", "", "", 101, "RateLimit-Limit: 9\nRateLimit-Remaining: -1\nRateLimit-Reset: 99999999999999999999\nCache-Control: private=\"\\")
	f.Add("CONNECT", "", ":", "Host: [", 99, "RateLimit-Policy: \"a\\\";q=1, 5;w=2\nVary: a\nVary: Origin")

	limit, clock := enforce(f, &policy.Policy{
		Headers: []policy.HeaderSet{policy.Triple, policy.Draft11, policy.XRateLimit},
		CORS:    &policy.CORS{Origins: []string{"https://a.example", "x"}},
		Limits: []*policy.Limit{
			{Name: "a", Per: trusted(f, 0, "::1/128"), Limit: limitOf(f, "2/s burst 5", comporta.TokenBucket)},
			{Name: "b", Match: patterns(f, "/b"), Per: identity.Everyone{}, Limit: limitOf(f, "5/s", comporta.SlidingCounter)},
			{Name: "c", Match: patterns(f, "DELETE /"), Per: &identity.Address{}, Limit: limitOf(f, "0/s", comporta.SlidingLog)},
		},
	}, httplimit.Options{})
	second := 0.0
	f.Fuzz(func(t *testing.T, method, path, remote, sent string, status int, answered string) {
		second += 0.1
		clock.at(second)
		r := &http.Request{Method: method, URL: &url.URL{Path: path}, RemoteAddr: remote, Header: header(sent)}
		r.Host = r.Header.Get("Host")
		if u, err := url.ParseRequestURI(path); err == nil {
			r.URL = u
		}
		if status < 100 || status > 999 {
			status = 200
		}
		reached := false
		rec := httptest.NewRecorder()
		limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			reached = true
			for name, lines := range header(answered) {
				w.Header()[name] = lines
			}
			w.WriteHeader(status)
		})).ServeHTTP(rec, r)

		got := rec.Result()
		asIs := got.Header.Get("Ratelimit-Limit") == "" // a shared cache may keep it, or no limit applied
		for _, name := range ours {
			if len(got.Header[name]) > 1 && !asIs {
				t.Errorf("%s is on %d lines: %q", name, len(got.Header[name]), got.Header[name])
			}
		}
		if reached {
			return
		}
		if _, err := httpsfv.UnmarshalList(got.Header["Ratelimit"]); err != nil {
			t.Errorf("%q: %v", got.Header["Ratelimit"], err)
		}
		body, err := io.ReadAll(got.Body)
		if err != nil || len(body) > 0 && !json.Valid(body) {
			t.Errorf("%v: %s", err, body)
		}
	})
}

// header reads lines of name: value, as a server would have let them in.
func header(text string) http.Header {
	h := http.Header{}
	for line := range strings.SplitSeq(text, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}
