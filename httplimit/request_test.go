package httplimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// What was matched is what goes on, and the request that came in stays as it was.
func TestTheCleanPathGoesOn(t *testing.T) {
	everyone := &policy.Limit{Name: "all", Match: patterns(t, "/"), Per: identity.Everyone{}, Limit: limitOf(t, "1000/s", comporta.FixedWindow)}
	for _, c := range []struct {
		sent, path, escaped string
		loose               bool
	}{
		{sent: "/a/b", path: "/a/b", escaped: "/a/b"},
		{sent: "/a//b/../c?x=1", path: "/a/c", escaped: "/a/c"},
		{sent: "/%61%20b", path: "/a b", escaped: "/a%20b"},
		{sent: "/a%2fb/./%7e", path: "/a/b/~", escaped: "/a%2Fb/~", loose: true},
		{sent: "http://example.com", path: "/", escaped: "/"},
	} {
		limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{everyone}, Paths: policy.Paths{Loose: c.loose}}, httplimit.Options{})
		var path, escaped, query string
		h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			path, escaped, query = r.URL.Path, r.URL.EscapedPath(), r.URL.RawQuery
		}))
		r := get(c.sent)
		before := *r.URL
		if got := ask(h, r); got.StatusCode != 200 {
			t.Errorf("%s: %s", c.sent, got.Status)
			continue
		}
		if path != c.path || escaped != c.escaped || query != before.RawQuery {
			t.Errorf("%s goes on as %s, escaped %s, query %s", c.sent, path, escaped, query)
		}
		if diff := cmp.Diff(before, *r.URL); diff != "" {
			t.Errorf("%s: the request that came in was changed (-was +is):\n%s", c.sent, diff)
		}
	}
}

// Targets without a path: CONNECT and OPTIONS * are theirs to have, others are refused.
func TestTargetsWithoutPath(t *testing.T) {
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "9/min", comporta.FixedWindow)}}, httplimit.Options{})
	h := limit(ok)
	for _, c := range []struct {
		method string
		url    url.URL
		status int
	}{
		{http.MethodConnect, url.URL{Host: "example.com:443"}, 200},
		{http.MethodOptions, url.URL{Path: "*"}, 200},
		{http.MethodGet, url.URL{Scheme: "http", Opaque: "admin"}, 400},
		{http.MethodGet, url.URL{Path: "admin"}, 400},
	} {
		r := get("/")
		r.Method, r.URL = c.method, &c.url
		if got := ask(h, r); got.StatusCode != c.status {
			t.Errorf("%s %v: %s, want %d", c.method, c.url, got.Status, c.status)
		}
	}
}

// A peer without an address is trusted as a Unix socket is; one whose address
// cannot be read is not.
func TestPeers(t *testing.T) {
	p := &policy.Policy{Limits: []*policy.Limit{{
		Name: "a", Per: trusted(t, 0, "10.0.0.0/8"), Limit: limitOf(t, "1/min", comporta.FixedWindow),
	}}}
	for remote, believed := range map[string]bool{
		"10.1.2.3:80":          true,
		"10.1.2.3":             true,
		"[::ffff:10.1.2.3]:80": true,
		"@":                    true,
		"":                     true,
		"/run/proxy.sock":      true,
		"192.0.2.1:80":         false,
		"[fe80::1%eth0]:80":    false,
		"proxy.internal:80":    false,
		"10.1.2.3.4:80":        false,
	} {
		limit, _ := enforce(t, p, httplimit.Options{})
		h := limit(ok)
		ask(h, get("/", from(remote), with("X-Forwarded-For", "203.0.113.1")))
		second := ask(h, get("/", from(remote), with("X-Forwarded-For", "203.0.113.2")))
		if got := second.StatusCode == 200; got != believed {
			t.Errorf("%q: its forwarding header believed %v, want %v", remote, got, believed)
		}
	}
}

// Patterns with a host see it without its port.
func TestHosts(t *testing.T) {
	host := perAddress(t, "a", "9/min", comporta.FixedWindow)
	host.Match = patterns(t, "api.example.com/", "[2001:db8::1]/")
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{host}}, httplimit.Options{})
	h := limit(ok)
	for name, limited := range map[string]bool{
		"api.example.com": true, "api.example.com:8080": true, "example.com": false, "[2001:db8::1]": true, "[2001:db8::1]:80": true, "": false,
	} {
		r := get("/")
		r.Host = name
		if got := ask(h, r).Header.Get("Ratelimit-Limit") != ""; got != limited {
			t.Errorf("%q: limited %v, want %v", name, got, limited)
		}
	}
}

// The observer sees each verdict once, refused ones too.
func TestObserve(t *testing.T) {
	var seen []string
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "1/min", comporta.FixedWindow)}}, httplimit.Options{
		Observe: func(v *policy.Verdict, r *http.Request) {
			seen = append(seen, r.URL.Path+" "+v.Applied[v.Named].Limit.Name+map[bool]string{true: " allowed", false: " denied"}[v.Allowed])
		},
	})
	h := limit(ok)
	for _, target := range []string{"/x", "/y", "/a%2fb"} { // the last is refused unasked
		ask(h, get(target))
	}
	if diff := cmp.Diff([]string{"/x a allowed", "/y a denied"}, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPerAddress(t *testing.T) {
	store, err := memstore.New(memstore.Options{MaxKeys: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	limit, err := httplimit.PerAddress(store, "1/h")
	if err != nil {
		t.Fatal(err)
	}
	h := limit(ok)
	var got []int
	for _, peer := range []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1"} {
		got = append(got, ask(h, get("/", from(peer))).StatusCode)
	}
	if diff := cmp.Diff([]int{200, 429, 200}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "1/day", "1/min burst 0", "-1/s", "1/1000d"} {
		if _, err := httplimit.PerAddress(store, text); err == nil {
			t.Errorf("%q was taken", text)
		} else {
			t.Log(err)
		}
	}
}

// A store that cannot answer does not stop a service, and shows no numbers.
func TestStoreFails(t *testing.T) {
	engine, err := policy.NewEngine(&policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "1/min", comporta.FixedWindow)}}, broken{}, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := httplimit.New(engine, httplimit.Options{})(ok)
	if got := ask(h, get("/")); got.StatusCode != 200 || got.Header.Get("Ratelimit-Limit") != "" {
		t.Errorf("%s %v", got.Status, got.Header)
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if got := ask(h, get("/").WithContext(gone)); got.StatusCode != 503 {
		t.Errorf("uncounted and nobody waits: %s", got.Status)
	}
	if got := ask(h, get("/", with("Content-Type", "application/grpc")).WithContext(gone)); got.Header.Get("Grpc-Status") != "14" {
		t.Errorf("the same over gRPC: %v", got.Header)
	}
}

// broken is a store that is down.
type broken struct{}

func (broken) Take(context.Context, []comporta.Take, []comporta.Taken) error {
	return errors.New("no connection")
}

func (broken) Settle(context.Context, []comporta.Settlement, []comporta.Taken) error {
	return errors.New("no connection")
}
