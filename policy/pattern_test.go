package policy_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/comporta/comporta/policy"
)

func pattern(t testing.TB, text string) *policy.Pattern {
	t.Helper()
	p, err := policy.ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParsePatternSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"": "no path", "GET": "write GET / for all its requests", "search": "begins with a slash",
		"get /": "written in capitals, as GET", "G<T /": `method "G<T" is none`, " /a": "begins with a blank",
		"GET POST /a": "neither one method nor a host", "GET example.com:80/": "leave it out",
		"{host}/": "only paths have them", "//": "empty segment", "/a//b": "empty segment", "/a/../b": "paths are cleaned first",
		"/a/.": "paths are cleaned first", "/%2e%2E/a": "paths are cleaned first", "/a%2Fb": "an encoded slash", "/a%": "two hexadecimal digits",
		"/a?b=c": "neither query nor blanks", "/a b": "neither query nor blanks", "/a#b": "neither query nor blanks",
		"/{": "a whole segment", "/a{id}": "a whole segment", "/{id}b": "a whole segment", "/a}": "a whole segment",
		"/{}": "without a name", "/{...}": "without a name", "/{1d}": "a letter first", "/{a-b}": "a letter first", "/{a.b}": "a letter first",
		"/{$}/": "stands at the end only", "/{$}/a": "stands at the end only", "/{all...}/": "stands at the end only",
		"/{id}/{id}": `two wildcards are named "id"`, "/{id}/{id...}": `two wildcards are named "id"`,
		"GET/a": "write GET and the path", "POST/": "write POST and the path", "*.example.com/": "no host's name has one",
		"/*": "%2A for the sign", "/api/**": "a slash at the end for all below", "GET /a*": "write {id} for any segment", "/a/*/b": "write {id} for any segment",
	} {
		p, err := policy.ParsePattern(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), `pattern "`) {
			t.Errorf("%q: %v, error %v, want one with %q", text, p, err, want)
		}
	}
}

func TestPatternsMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, method, host, path string
		want                        bool
	}{
		{"/", "GET", "", "/", true},
		{"/", "GET", "", "/a/b", true},
		{"/", "OPTIONS", "", "*", true},
		{"/{$}", "OPTIONS", "", "*", false},
		{"/{id}", "OPTIONS", "", "*", false},
		{"/{$}", "GET", "", "/", true},
		{"/{$}", "GET", "", "/a", false},
		{"GET /a", "GET", "", "/a", true},
		{"GET /a", "HEAD", "", "/a", true},
		{"GET /a", "get", "", "/a", false},
		{"HEAD /a", "GET", "", "/a", false},
		{"POST /a", "HEAD", "", "/a", false},
		{"/a", "GET", "", "/A", false},
		{"/a", "GET", "", "/a/", false},
		{"/a/", "GET", "", "/a", false},
		{"/a/", "GET", "", "/a/", true},
		{"/a/", "GET", "", "/a/b/c", true},
		{"/a/{$}", "GET", "", "/a/", true},
		{"/a/{$}", "GET", "", "/a/b", false},
		{"/a/{id}", "GET", "", "/a/b", true},
		{"/a/{id}", "GET", "", "/a/", false},
		{"/a/{id}", "GET", "", "/a/b/", false},
		{"/{id}/b", "GET", "", "/a/b", true},
		{"/a/{all...}", "GET", "", "/a/", true},
		{"/a/{all...}", "GET", "", "/a", false},
		{"/a/{all...}", "GET", "", "/a/b/c/", true},
		{"/caf%C3%A9", "GET", "", "/café", true},
		{"/%2A", "GET", "", "/*", true},
		{"get/", "GET", "get", "/", true},
		{"/café", "GET", "", "/café", true},
		{"example.com/", "GET", "example.com", "/a", true},
		{"example.com/", "GET", "EXAMPLE.com.", "/a", true},
		{"Example.com./", "GET", "example.com", "/a", true},
		{"example.com/", "GET", "www.example.com", "/a", false},
		{"GET example.com/a", "GET", "", "/a", false},
	} {
		if got := pattern(t, c.pattern).Match(c.method, c.host, c.path); got != c.want {
			t.Errorf("%s on %s %s%s: %v", c.pattern, c.method, c.host, c.path, got)
		}
	}
}

func TestWildcardsStandForWhatTheyMatched(t *testing.T) {
	for _, c := range []struct{ pattern, path, name, want string }{
		{"/a/{id}", "/a/b", "id", "b"},
		{"/a/{id}", "/a/b", "no", ""},
		{"/{x}/{y}", "/a/b", "y", "b"},
		{"/a/{all...}", "/a/b/c/", "all", "b/c/"},
		{"/a/{all...}", "/a/", "all", ""},
		{"/a/", "/a/b", "", ""},
	} {
		if got := pattern(t, c.pattern).Value(c.path, c.name); got != c.want {
			t.Errorf("{%s} of %s on %s: %q, want %q", c.name, c.pattern, c.path, got, c.want)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "all"}, pattern(t, "GET example.com/{a}/x/{b}/{all...}").Wildcards()); diff != "" {
		t.Error(diff)
	}
}

// failing is a test or a property.
type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

// served is what a ServeMux with one pattern does with a request: whether it
// matches, and the values of the wildcards.
func served(t failing, p *policy.Pattern, method, host, forward string) (matched bool, values map[string]string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc(p.String(), func(_ http.ResponseWriter, r *http.Request) {
		matched, values = true, map[string]string{}
		for _, name := range p.Wildcards() {
			values[name] = r.PathValue(name)
		}
	})
	u, err := url.ParseRequestURI(forward)
	if err != nil {
		t.Fatalf("%q is no path: %v", forward, err)
	}
	mux.ServeHTTP(httptest.NewRecorder(), &http.Request{Method: method, Host: host, URL: u, RequestURI: forward})
	return matched, values
}

// hold holds a pattern against a ServeMux on one request, whose path is cleaned first.
func hold(t failing, p *policy.Pattern, method, host, escaped string) {
	t.Helper()
	forward, decoded, err := policy.Paths{}.Clean(escaped)
	if err != nil || decoded == "*" {
		return
	}
	want, values := served(t, p, method, host, forward)
	if got := p.Match(method, host, decoded); got != want {
		t.Fatalf("%s on %s %s%s: %v, a ServeMux says %v", p, method, host, forward, got, want)
	}
	for name, want := range values {
		if got := p.Value(decoded, name); got != want {
			t.Fatalf("{%s} of %s on %s: %q, a ServeMux says %q", name, p, forward, got, want)
		}
	}
}

func TestPatternsAgreeWithServeMux(t *testing.T) {
	segments := []string{"a", "b", "ab", "{x}", "{y}", "%61", "é", "%C3%A9", "a.b", "..."}
	ends := []string{"", "/", "/{$}", "/{rest...}"}
	pieces := []string{"a", "b", "ab", "%61", "%C3%A9", "a.b", "...", ".", "..", "%2e", "", "{x}", "A", "%25"}
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom(segments), 0, 3, rapid.ID[string]).Draw(r, "pattern"), "/")
		if text != "" {
			text = "/" + text
		}
		text += rapid.SampledFrom(ends).Draw(r, "end")
		if text == "" {
			text = "/"
		}
		text = rapid.SampledFrom([]string{"", "GET ", "POST\t ", "HEAD "}).Draw(r, "method") + rapid.SampledFrom([]string{"", "example.com"}).Draw(r, "host") + text
		p, err := policy.ParsePattern(text)
		if err != nil {
			r.Fatal(err)
		}
		for range 20 {
			path := "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 5).Draw(r, "path"), "/")
			method := rapid.SampledFrom([]string{"GET", "HEAD", "POST", "get"}).Draw(r, "asked")
			hold(r, p, method, rapid.SampledFrom([]string{"example.com", "example.org"}).Draw(r, "at"), path)
		}
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("GET example.com/a/{b}/{c...}", "GET", "example.com", "/a/b/../%C3%A9/d/")
	f.Add("/a/{$}", "HEAD", "", "//a/./")
	f.Add("/{x}", "POST", "", "/%7bx%7d")
	f.Fuzz(func(t *testing.T, text, method, host, escaped string) {
		p, err := policy.ParsePattern(text)
		if err != nil {
			return
		}
		if strings.ContainsAny(host+text, ":[].") || host != strings.ToLower(host) || strings.ToLower(text) != text {
			host = "" // hosts are where we mean to differ: case, ports, a dot at the end
		}
		if method == "CONNECT" {
			return // whose paths a ServeMux does not clean
		}
		hold(t, p, method, host, escaped)
	})
}

// A dot at a host's end is nothing, so a dot alone would be any host.
func TestADotAloneIsNoHost(t *testing.T) {
	for _, text := range []string{"./", "GET ./a"} {
		if p, err := policy.ParsePattern(text); err == nil || !strings.Contains(err.Error(), "a dot alone is no host") {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}
