package policy_test

import (
	"errors"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/comporta/comporta/policy"
)

func TestCleanPaths(t *testing.T) {
	for _, c := range []struct{ in, forward, decoded string }{
		{"/", "/", "/"},
		{"", "/", "/"},
		{"*", "*", "*"},
		{"/a/b", "/a/b", "/a/b"},
		{"/a/b/", "/a/b/", "/a/b/"},
		{"/a//b", "/a/b", "/a/b"},
		{"///", "/", "/"},
		{"/a//", "/a/", "/a/"},
		{"/a/./b", "/a/b", "/a/b"},
		{"/a/.", "/a/", "/a/"},
		{"/a/..", "/", "/"},
		{"/a/b/..", "/a/", "/a/"},
		{"/a/b/../c", "/a/c", "/a/c"},
		{"/a/b/../../../c", "/c", "/c"},
		{"/..", "/", "/"},
		{"/../", "/", "/"},
		{"/./", "/", "/"},
		{"/a//../b", "/b", "/b"},
		{"/a/...", "/a/...", "/a/..."},
		{"/a/.b/..c", "/a/.b/..c", "/a/.b/..c"},
		{"/%61dmin", "/admin", "/admin"},
		{"/%2e%2E/a", "/a", "/a"},
		{"/a/%2e", "/a/", "/a/"},
		{"/%7Eme", "/~me", "/~me"},
		{"/%c3%a9", "/%C3%A9", "/é"},
		{"/é", "/%C3%A9", "/é"},
		{"/a%20b", "/a%20b", "/a b"},
		{"/a b", "/a%20b", "/a b"},
		{"/a%2Bb+c", "/a%2Bb+c", "/a+b+c"},
		{"/a%3Fb", "/a%3Fb", "/a?b"},
		{"/%25%32%66", "/%252f", "/%2f"},
		{"/%2561", "/%2561", "/%61"},
		{"/{id}", "/%7Bid%7D", "/{id}"},
		{"/a:b@c!$&'()*,=", "/a:b@c!$&'()*,=", "/a:b@c!$&'()*,="},
	} {
		forward, decoded, err := policy.Paths{}.Clean(c.in)
		if err != nil || forward != c.forward || decoded != c.decoded {
			t.Errorf("%q: %q, %q, %v, want %q, %q", c.in, forward, decoded, err, c.forward, c.decoded)
		}
		if plain := c.in == c.forward && c.in == c.decoded && c.in != "*"; policy.IsPlain(c.in) != plain {
			t.Errorf("%q: plain is %v, want %v", c.in, !plain, plain)
		}
	}
}

// What an upstream might read otherwise is refused, unless paths are loose: then
// it stays what it is within its segment.
func TestDoubtfulPaths(t *testing.T) {
	for _, c := range []struct{ in, why, forward, decoded string }{
		{"/a%2Fb", "encoded slash", "/a%2Fb", "/a%2Fb"},
		{"/a%2fb", "encoded slash", "/a%2Fb", "/a%2Fb"},
		{"/a/..%2fb", "encoded slash", "/a/..%2Fb", "/a/..%2Fb"},
		{`/a\b`, "backslash", "/a%5Cb", `/a\b`},
		{"/a%5cb", "backslash", "/a%5Cb", `/a\b`},
		{`/a/..\b`, "backslash", "/a/..%5Cb", `/a/..\b`},
		{"/a;b=c", "parameter", "/a;b=c", "/a;b=c"},
		{"/..;/a", "parameter", "/..;/a", "/..;/a"},
		{"/a%3bb", "parameter", "/a%3Bb", "/a;b"},
		{"/a%", "percent sign", "/a%25", "/a%"},
		{"/a%2", "percent sign", "/a%252", "/a%2"},
		{"/a%zz", "percent sign", "/a%25zz", "/a%zz"},
		{"/a%%61", "percent sign", "/a%25a", "/a%a"},
		{"/a%00", "control", "/a%00", "/a\x00"},
		{"/a\n", "control", "/a%0A", "/a\n"},
		{"/a%7f", "control", "/a%7F", "/a\x7f"},
		{"/%ff", "UTF-8", "/%FF", "/\xff"},
		{"/%c0%af", "UTF-8", "/%C0%AF", "/\xc0\xaf"},
		{"/%C0%AE%C0%AE/a", "UTF-8", "/%C0%AE%C0%AE/a", "/\xc0\xae\xc0\xae/a"},
	} {
		_, _, err := policy.Paths{}.Clean(c.in)
		if !errors.Is(err, policy.ErrPath) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%q: error %v, want one with %q", c.in, err, c.why)
		}
		forward, decoded, err := policy.Paths{Loose: true}.Clean(c.in)
		if err != nil || forward != c.forward || decoded != c.decoded {
			t.Errorf("%q, loosely: %q, %q, %v, want %q, %q", c.in, forward, decoded, err, c.forward, c.decoded)
		}
	}
	for _, in := range []string{"a", "http://a/b", "**", "?"} {
		if _, _, err := (policy.Paths{Loose: true}).Clean(in); !errors.Is(err, policy.ErrPath) {
			t.Errorf("%q: error %v", in, err)
		}
	}
}

func TestACleanPathCostsNothing(t *testing.T) {
	in := "/v1/tenants/acme/reports/2026-11-30/export.csv"
	if n := testing.AllocsPerRun(100, func() { policy.Paths{}.Clean(in) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"/a/../b//c/./%2e%2E/d", "/%2561;%3b", "/a%2f..%5c", "/é%ff", "//../..", "/%zz%"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, in string, loose bool) {
		paths := policy.Paths{Loose: loose}
		forward, decoded, err := paths.Clean(in)
		if err != nil {
			if !errors.Is(err, policy.ErrPath) || forward != "" || decoded != "" {
				t.Fatalf("%q: %q, %q, %v", in, forward, decoded, err)
			}
			return
		}
		if f, d, err := paths.Clean(forward); f != forward || d != decoded || err != nil {
			t.Fatalf("%q: %q, %q; once more: %q, %q, %v", in, forward, decoded, f, d, err)
		}
		if decoded == "*" {
			return
		}
		u, err := url.ParseRequestURI(forward)
		if err != nil || u.EscapedPath() != forward {
			t.Fatalf("%q: net/url reads %q as %q: %v", in, forward, u.EscapedPath(), err)
		}
		// An encoded slash, which only loose paths have, is no slash to patterns.
		if want := strings.ReplaceAll(forward, "%2F", "%252F"); unescaped(t, want) != decoded {
			t.Fatalf("%q: %q is not %q decoded", in, decoded, forward)
		}
		for i, piece := range strings.Split(decoded, "/") {
			if last := strings.Count(decoded, "/"); piece == "." || piece == ".." || piece == "" && i != 0 && i != last {
				t.Fatalf("%q: %q has the segment %q", in, decoded, piece)
			}
		}
		if plain := path.Clean(decoded); plain != strings.TrimSuffix(decoded, "/") && plain != decoded {
			t.Fatalf("%q: %q is not clean", in, decoded)
		}
	})
}

func unescaped(t *testing.T, s string) string {
	u, err := url.PathUnescape(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
