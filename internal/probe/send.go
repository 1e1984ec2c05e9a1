package probe

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/comporta/comporta/client"
)

// maxBody is read of an answer, and requestTime is how long one may take.
const (
	maxBody     = 16 << 10
	requestTime = 30 * time.Second
)

// A Target is what is probed, and as whom.
type Target struct {
	Method, URL string
	Body        string
	Header      http.Header
	// Denied is another status than 429 that means a refusal; 0 is none.
	Denied int
	// Identities are the fields of the first identity and, where there is one, of the
	// second.
	Identities []http.Header
}

// credentials are words in the names of fields that say who asks.
var credentials = []string{"auth", "key", "token", "secret", "session", "cookie", "user", "client", "account", "tenant", "consumer", "signature"}

// Identify takes the fields of two requests apart: those that say who asks are
// identities, the others go with every request. Where there is a second identity,
// the names of its fields tell which; where not, what such fields are called does.
func (t *Target) Identify(first, second http.Header) {
	t.Header, t.Identities = http.Header{}, []http.Header{{}}
	if len(second) > 0 {
		t.Identities = append(t.Identities, second)
	}
	for name, values := range first {
		_, ok := second[name]
		if len(second) == 0 {
			ok = slices.ContainsFunc(credentials, func(word string) bool { return strings.Contains(strings.ToLower(name), word) })
		}
		if ok {
			t.Identities[0][name] = values
		} else {
			t.Header[name] = values
		}
	}
}

// as says with which fields each identity asks, without what is in them.
func (t *Target) as() (identities []string) {
	for _, h := range t.Identities {
		if len(h) == 0 {
			continue
		}
		var fields []string
		for _, name := range slices.Sorted(maps.Keys(h)) {
			fields = append(fields, name+": •••")
		}
		identities = append(identities, strings.Join(fields, ", "))
	}
	return identities
}

// shown is the URL as reports show it: a query may hold a key.
func (t *Target) shown() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return "the URL"
	}
	u.User, u.Fragment, u.RawFragment = nil, "", "" // the fragment is not even sent
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	return u.String()
}

// NewSender sends over HTTP. It follows no redirect and keeps no cookie. The
// transport is that of Go where it is nil.
func NewSender(t Target, transport http.RoundTripper) Sender {
	s := &httpSender{target: t, kept: transport, fresh: transport}
	if transport == nil {
		kept := http.DefaultTransport.(*http.Transport).Clone()
		kept.MaxIdleConnsPerHost, kept.DisableCompression = 1000, true
		fresh := kept.Clone()
		fresh.DisableKeepAlives = true
		s.kept, s.fresh = kept, fresh
	}
	return s
}

type httpSender struct {
	target      Target
	kept, fresh http.RoundTripper
}

// Send sends one request and reads its answer.
func (s *httpSender) Send(ctx context.Context, r *Request) (shot Shot) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	// The instant of sending is when the connection stands and the request leaves.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { shot.Sent = now() },
		GotFirstResponseByte: func() { shot.Received = now() },
	})
	req, err := s.request(ctx, r)
	if err != nil {
		return Shot{Err: err}
	}
	transport := s.kept
	if r.Fresh {
		transport = s.fresh
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		shot.Err = err
		return shot
	}
	defer resp.Body.Close()
	if shot.Received.IsZero() {
		shot.Received = now()
	}
	shot.Status, shot.Header = resp.StatusCode, resp.Header
	shot.Refused = s.target.Denied != 0 && resp.StatusCode == s.target.Denied
	shot.Body, _ = io.ReadAll(io.LimitReader(resp.Body, maxBody)) // what came is what there is to see
	shot.Hints = client.Hints(resp, shot.Received)
	shot.RetryAfter, shot.Told = client.RetryAfter(resp, shot.Received)
	return shot
}

func (s *httpSender) request(ctx context.Context, r *Request) (*http.Request, error) {
	method, target := s.target.Method, s.target.URL
	if r.Method != "" {
		method = r.Method
	}
	if r.URL != "" {
		target = r.URL
	}
	var body io.Reader
	if s.target.Body != "" && method != http.MethodHead && method != http.MethodOptions {
		body = strings.NewReader(s.target.Body)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "comporta-probe")
	put := func(h http.Header) {
		for name, values := range h {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	put(s.target.Header)
	if r.Identity >= 0 && r.Identity < len(s.target.Identities) {
		put(s.target.Identities[r.Identity])
	}
	put(r.Header)
	if host := req.Header.Get("Host"); host != "" { // net/http sends no other
		req.Host = host
	}
	return req, nil
}
