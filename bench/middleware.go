package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
	"github.com/didip/tollbooth/v8"
	tolllimiter "github.com/didip/tollbooth/v8/limiter"
	"github.com/go-chi/httprate"
	golimit "github.com/sethvargo/go-limiter/httplimit"
	"github.com/throttled/throttled/v2"
	ululehttp "github.com/ulule/limiter/v3/drivers/middleware/stdlib"
)

// A guard limits a handler by the client's address.
type guard struct {
	name string
	ours bool
	wrap func(a allowance, next http.Handler) (http.Handler, error)
}

// bare is the handler without a guard: what the others are measured over.
const bare = "bare handler"

var guards = []guard{
	{name: bare, wrap: func(_ allowance, next http.Handler) (http.Handler, error) { return next, nil }},
	{name: "httprate", wrap: guardHTTPRate},
	{name: "ulule", wrap: guardUlule},
	{name: "throttled", wrap: guardThrottled},
	{name: "go-limiter", wrap: guardGoLimiter},
	{name: "tollbooth", wrap: guardTollbooth},
	{name: "comporta, triple", ours: true, wrap: guardComporta(policy.Triple)},
	{name: "comporta, all headers", ours: true, wrap: guardComporta(policy.Triple, policy.Draft11, policy.XRateLimit)},
}

func guardHTTPRate(a allowance, next http.Handler) (http.Handler, error) {
	byAddress := func(r *http.Request) (string, error) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		return httprate.CanonicalizeIP(host), err
	}
	return httprate.LimitBy(a.Units, a.Window, byAddress)(next), nil
}

func guardUlule(a allowance, next http.Handler) (http.Handler, error) {
	return ululehttp.NewMiddleware(newUlule(a)).Handler(next), nil
}

func guardThrottled(a allowance, next http.Handler) (http.Handler, error) {
	limiter, err := newThrottled(a)
	if err != nil {
		return nil, err
	}
	h := throttled.HTTPRateLimiterCtx{RateLimiter: limiter, VaryBy: &throttled.VaryBy{RemoteAddr: true}}
	return h.RateLimit(next), nil
}

func guardGoLimiter(a allowance, next http.Handler) (http.Handler, error) {
	store, err := newGoLimiter(a)
	if err != nil {
		return nil, err
	}
	m, err := golimit.NewMiddleware(store, golimit.IPKeyFunc())
	if err != nil {
		return nil, err
	}
	return m.Handle(next), nil
}

// guardTollbooth: its rates are per second, whatever they are.
func guardTollbooth(a allowance, next http.Handler) (http.Handler, error) {
	limiter := tollbooth.NewLimiter(float64(a.Units)/a.Window.Seconds(), nil).SetBurst(a.Units)
	limiter.SetIPLookup(tolllimiter.IPLookup{Name: "RemoteAddr"})
	return tollbooth.LimitHandler(limiter, next), nil
}

func guardComporta(headers ...policy.HeaderSet) func(allowance, http.Handler) (http.Handler, error) {
	return func(a allowance, next http.Handler) (http.Handler, error) {
		store, err := newMemstore()
		if err != nil {
			return nil, err
		}
		limit := policy.Limit{Name: "requests", Per: &identity.Address{}, Limit: a.limit(comporta.TokenBucket)}
		engine, err := policy.NewEngine(&policy.Policy{Limits: []*policy.Limit{&limit}, Headers: headers}, store, policy.Options{})
		if err != nil {
			return nil, err
		}
		return httplimit.New(engine, httplimit.Options{})(next), nil
	}
}

// prepareMiddleware wraps a handler and lets each client make its first requests.
func prepareMiddleware(s setup) (func(zipf bool) load, error) {
	i := slices.IndexFunc(guards, func(g guard) bool { return g.name == s.Contender })
	if i < 0 {
		return nil, fmt.Errorf("no middleware is named %q", s.Contender)
	}
	handler, err := guards[i].wrap(s.Allowance, http.HandlerFunc(hello))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Contender, err)
	}
	requests := middlewareLoad(handler, s.Keys)
	if first := requests(0); first(s.Keys*s.Fill) != s.Keys*s.Fill {
		return nil, fmt.Errorf("%s denied a request within the limit", s.Contender)
	}
	return func(bool) load { return requests }, nil
}

func hello(w http.ResponseWriter, _ *http.Request) { w.Write(greeting) }

var greeting = []byte("hello\n")

// middlewareLoad serves requests of so many clients in turns. What a server does
// around a handler is left out: the requests are made beforehand, and the
// recorder is used again.
func middlewareLoad(handler http.Handler, clients int) load {
	return func(int) func(int) int {
		requests := make([]*http.Request, clients)
		for i := range requests {
			requests[i] = newRequest(i)
		}
		w := recorder{header: make(http.Header)}
		at := 0
		return func(n int) (allowed int) {
			for range n {
				w.reset()
				handler.ServeHTTP(&w, requests[at])
				if w.status == http.StatusOK {
					allowed++
				}
				if at++; at == clients {
					at = 0
				}
			}
			return allowed
		}
	}
}

// newRequest is the i-th client's request, as a server hands it on.
func newRequest(i int) *http.Request {
	r := &http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: "/v1/things"}, RequestURI: "/v1/things",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "api.example.com", Body: http.NoBody,
		Header:     http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"gzip"}, "User-Agent": {"curl/8.5.0"}},
		RemoteAddr: fmt.Sprintf("198.18.%d.%d:%d", i>>8&255, i&255, 1024+i),
	}
	return r.WithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, &net.TCPAddr{}))
}

// A recorder is a ResponseWriter that keeps the status only, and its header map
// for the next response.
type recorder struct {
	header http.Header
	status int
}

func (w *recorder) reset() { clear(w.header); w.status = 0 }

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(b), nil
}
