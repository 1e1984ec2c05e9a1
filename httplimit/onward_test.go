package httplimit_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

var marks = &policy.Marks{Key: []byte("0123456789abcdef")}

// over is a limit that lets pass what is over it.
func over(t testing.TB, name string, does policy.OnLimit) *policy.Limit {
	l := perAddress(t, name, "1/min", comporta.FixedWindow)
	l.OnLimit = does
	return l
}

// The upstream is told of what is over a limit, and by us alone.
func TestTheUpstreamIsTold(t *testing.T) {
	limit, _ := enforce(t, &policy.Policy{
		Limits: []*policy.Limit{over(t, "soft", policy.Mark), over(t, "slow", policy.Demote), over(t, "last", policy.Demote), over(t, "soft-too", policy.Mark)},
		Marks:  marks,
	}, httplimit.Options{})
	var sent http.Header
	h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header }))
	forged := func() *http.Request {
		return get("/login?x=1", with("Comporta-Mark", "forged"), with("Comporta-Demoted", "forged"), with("X-Other", "1"))
	}
	ask(h, forged())
	if diff := cmp.Diff(http.Header{"X-Other": {"1"}}, sent); diff != "" {
		t.Errorf("under the limits (-want +got):\n%s", diff)
	}
	r := forged()
	if got := ask(h, r); got.StatusCode != 200 || got.Header.Get("Ratelimit-Remaining") != "0" {
		t.Errorf("%s %v", got.Status, got.Header)
	}
	if diff := cmp.Diff([]string{"slow", "last"}, sent["Comporta-Demoted"]); diff != "" {
		t.Errorf("demoted (-want +got):\n%s", diff)
	}
	if r.Header.Get("Comporta-Mark") != "forged" || r.Header.Get("Comporta-Demoted") != "forged" {
		t.Error("the request that came in was changed")
	}
	want := []string{
		`"soft";v=1;t=1795996800;id="address:192.0.2.1";sig="jAcrV7aiDBQpghYHSJzDfOLju5exWQgSyz8e83BMa5I"`,
		`"soft-too";v=1;t=1795996800;id="address:192.0.2.1";sig="`,
	}
	if len(sent["Comporta-Mark"]) != 2 || sent["Comporta-Mark"][0] != want[0] || !strings.HasPrefix(sent["Comporta-Mark"][1], want[1]) {
		t.Errorf("marks:\n%s\nwant\n%s", strings.Join(sent["Comporta-Mark"], "\n"), strings.Join(want, "\n"))
	}
}

// A client cannot have a proxy behind us drop what we say.
func TestWhatWeSayIsNotNominated(t *testing.T) {
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{over(t, "soft", policy.Mark), over(t, "slow", policy.Demote)}, Marks: marks}, httplimit.Options{})
	var sent http.Header
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header }))
	defer upstream.Close()
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	h := limit(httputil.NewSingleHostReverseProxy(to))
	for _, lines := range [][]string{{"comporta-mark, close,Comporta-Demoted", "x-other"}, {"Comporta-Mark", "Comporta-Demoted"}, nil} {
		for range 2 {
			ask(h, get("/", with("Connection", lines...), with("X-Other", "1")))
		}
		if sent["Comporta-Mark"] == nil || sent["Comporta-Demoted"] == nil || sent["X-Other"] == nil {
			t.Errorf("with Connection: %q the upstream is sent %v", lines, sent)
		}
	}
}

// A policy without marks takes them from requests all the same, and one with a
// header of its own that one too.
func TestClientsMayNotMark(t *testing.T) {
	for header, p := range map[string]*policy.Policy{
		"Comporta-Mark": {Limits: []*policy.Limit{perAddress(t, "a", "9/min", comporta.FixedWindow)}},
		"X-Captcha":     {Limits: []*policy.Limit{over(t, "a", policy.Mark)}, Marks: &policy.Marks{Header: "X-Captcha", Key: marks.Key}},
	} {
		limit, _ := enforce(t, p, httplimit.Options{})
		var sent http.Header
		h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header }))
		ask(h, get("/", with(header, "forged")))
		if len(sent) != 0 {
			t.Errorf("%s: %v goes on", header, sent)
		}
	}
}

// What an authenticating proxy says goes on only from such a proxy.
func TestProxiesAloneNameUsers(t *testing.T) {
	user, err := identity.NewProxyHeader("X-User", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, new(identity.Secret),
		identity.ProxyHeaderOptions{Kind: "user", PlanHeader: "X-Plan", UnknownPlan: "free"})
	if err != nil {
		t.Fatal(err)
	}
	who, err := user.For("mallory")
	if err != nil {
		t.Fatal(err)
	}
	per := perAddress(t, "a", "9/min", comporta.FixedWindow)
	users := perAddress(t, "a", "9/min", comporta.FixedWindow)
	users.Per = identity.First{identity.All{user, &identity.Address{}}, &identity.Address{}}
	for name, p := range map[string]*policy.Policy{
		"in a limit": {Limits: []*policy.Limit{users}},
		"in a list":  {Limits: []*policy.Limit{per}, Deny: []policy.Listed{{Source: user, Who: who}}},
		"in an override": {Limits: []*policy.Limit{users}, Overrides: []*policy.Override{{
			Who: policy.Listed{Source: user, Who: who}, Limits: map[string]comporta.Limit{"a": limitOf(t, "9/min", comporta.TokenBucket)},
		}}},
	} {
		limit, _ := enforce(t, p, httplimit.Options{})
		var sent http.Header
		h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header }))
		for peer, want := range map[string]http.Header{
			"10.1.2.3:80":  {"X-User": {"alice"}, "X-Plan": {"pro"}},
			"192.0.2.1:80": {},
		} {
			ask(h, get("/", from(peer), with("X-User", "alice"), with("X-Plan", "pro")))
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Errorf("%s, from %s (-want +got):\n%s", name, peer, diff)
			}
		}
	}
}

// marked is a request with marks as the middleware puts them there, and when.
func marked(t *testing.T, target string) (*http.Request, time.Time) {
	t.Helper()
	weird := perAddress(t, "weird", "1/min", comporta.FixedWindow)
	weird.Per, weird.OnLimit = odd(`key:ü "\%,;sig="`), policy.Mark
	limit, clock := enforce(t, &policy.Policy{Limits: []*policy.Limit{over(t, "soft", policy.Mark), weird}, Marks: marks}, httplimit.Options{})
	var sent *http.Request
	h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r }))
	clock.at(30.5)
	for range 2 {
		ask(h, httptest.NewRequest(http.MethodPost, target, nil))
	}
	return sent, epoch.Add(30 * time.Second)
}

// odd is a source whose one client is named like no other.
type odd string

func (s odd) Identity(*identity.Request) (string, bool) { return string(s), true }
func (s odd) String() string                            { return "odd" }

func TestMarked(t *testing.T) {
	r, at := marked(t, "/login//a%20b?x=1")
	want := []httplimit.Mark{{Limit: "soft", Identity: "address:192.0.2.1", Time: at}, {Limit: "weird", Identity: `key:ü "\%,;sig="`, Time: at}}
	for _, now := range []time.Time{at, at.Add(time.Minute), at.Add(-time.Minute)} {
		if got, err := httplimit.Marked(r, marks, now); err != nil || !cmp.Equal(want, got) {
			t.Errorf("at %v: %v, %v", now, cmp.Diff(want, got), err)
		}
	}
	r.Header["Comporta-Mark"] = []string{" " + strings.Join(r.Header["Comporta-Mark"], " ,\t") + " "}
	if got, err := httplimit.Marked(r, marks, at); err != nil || !cmp.Equal(want, got) {
		t.Errorf("on one line: %v, %v", cmp.Diff(want, got), err)
	}
	if got, err := httplimit.Marked(get("/"), marks, at); got != nil || err != nil {
		t.Errorf("without any: %v, %v", got, err)
	}
	edit := func(old, new string) func(*http.Request) {
		return func(r *http.Request) {
			for i, line := range r.Header["Comporta-Mark"] {
				r.Header["Comporta-Mark"][i] = strings.Replace(line, old, new, 1)
			}
		}
	}
	for name, change := range map[string]func(*http.Request){
		"another path":    func(r *http.Request) { r.URL.Path = "/logout" },
		"another method":  func(r *http.Request) { r.Method = http.MethodGet },
		"another limit":   edit(`"soft"`, `"hard"`),
		"another client":  edit("192.0.2.1", "192.0.2.2"),
		"another time":    edit("t=1795996830", "t=1795996831"),
		"another version": edit("v=1", "v=2"),
		"no signature":    edit(`;sig="`, `;x="`),
		"an empty one":    func(r *http.Request) { r.Header["Comporta-Mark"][0] = `"soft";v=1;t=1795996830;id="a";sig=""` },
		"an open one": func(r *http.Request) {
			r.Header["Comporta-Mark"][0] = strings.TrimSuffix(r.Header["Comporta-Mark"][0], `"`)
		},
		"more behind it":   func(r *http.Request) { r.Header["Comporta-Mark"][0] += ";x=1" },
		"nothing of it":    func(r *http.Request) { r.Header["Comporta-Mark"][0] = "x" },
		"one more, forged": func(r *http.Request) { r.Header.Add("Comporta-Mark", "x") },
	} {
		r, at := marked(t, "/login")
		if got, err := httplimit.Marked(r, marks, at); err != nil || len(got) != 2 {
			t.Fatal(got, err)
		}
		change(r)
		if got, err := httplimit.Marked(r, marks, at); err == nil || got != nil {
			t.Errorf("%s: believed %v", name, got)
		} else if fmt.Sprint(err) == "" {
			t.Error(name)
		}
	}
	r, at = marked(t, "/login")
	for _, now := range []time.Time{at.Add(61 * time.Second), at.Add(-61 * time.Second)} {
		if got, err := httplimit.Marked(r, marks, now); err == nil {
			t.Errorf("at %v: believed %v", now, got)
		}
	}
	weak := `"soft";v=1;t=1795996830;id="a"`
	mac := hmac.New(sha256.New, []byte("short"))
	fmt.Fprintf(mac, "comporta-mark\n%s\nPOST /login", weak)
	r.Header["Comporta-Mark"] = []string{weak + `;sig="` + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)) + `"`}
	for _, m := range []*policy.Marks{{Key: []byte("fedcba9876543210")}, {Key: []byte("short")}, {}} {
		if got, err := httplimit.Marked(r, m, at); err == nil {
			t.Errorf("by another key: believed %v", got)
		}
	}
}

// A proxy behind the limits leaves out the fields that Connection names: none of
// those that limits go by, or that they say.
func TestConnectionTakesNothingAway(t *testing.T) {
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{over(t, "soft", policy.Mark)}, Marks: marks}, httplimit.Options{})
	var sent http.Header
	h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header }))
	ask(h, get("/"))
	for line, want := range map[string][]string{
		"close":                               {"close"},
		"Upgrade":                             {"Upgrade"},
		"keep-alive, Upgrade, HTTP2-Settings": {"keep-alive, Upgrade, HTTP2-Settings"},
		"comporta-mark":                       nil,
		"close,,Comporta-Mark, Content-Type":  {"close"},
	} {
		r := get("/", with("Connection", line), with("Content-Type", "text/plain"))
		ask(h, r)
		if diff := cmp.Diff(want, sent["Connection"]); diff != "" || sent.Get("Content-Type") == "" || sent.Get("Comporta-Mark") == "" {
			t.Errorf("%s: %v", line, sent)
		}
		if r.Header.Get("Connection") != line {
			t.Errorf("%s: the request that came in was changed", line)
		}
	}
}
