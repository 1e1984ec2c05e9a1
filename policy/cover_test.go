package policy_test

import (
	"testing"

	"github.com/comporta/comporta/policy"
	"pgregory.net/rapid"
)

func TestPatternsCoverOthers(t *testing.T) {
	for _, c := range []struct {
		p, o string
		want bool
	}{
		{"/", "GET /search", true},
		{"GET /search", "/search", false},
		{"GET /search", "HEAD /search", true},
		{"/items/{id}", "/items/7", true},
		{"/items/{id}", "/items/{other}", true},
		{"/items/7", "/items/{id}", false},
		{"/items/", "/items/{id}/parts", true},
		{"/items/", "/items", false},
		{"/items/{id}", "/items/", false},
		{"/items/{$}", "/items/{$}", true},
		{"/items/{$}", "/items/", false},
		{"example.com/", "/", false},
		{"/", "example.com/", true},
	} {
		if got := pattern(t, c.p).Covers(pattern(t, c.o)); got != c.want {
			t.Errorf("%s covers %s: %v", c.p, c.o, got)
		}
	}
}

// What a pattern covers it matches, whenever the other one matches.
func TestCoveringIsMatching(t *testing.T) {
	some := rapid.SampledFrom([]string{"/", "/a", "/a/", "/a/{$}", "/{x}", "/{x}/b", "/a/b", "/a/{y}", "/a/{rest...}", "GET /a", "HEAD /a", "h.example/a", "/{x}/{y}"})
	rapid.Check(t, func(t *rapid.T) {
		p, _ := policy.ParsePattern(some.Draw(t, "p"))
		o, _ := policy.ParsePattern(some.Draw(t, "o"))
		method := rapid.SampledFrom([]string{"GET", "HEAD", "POST"}).Draw(t, "method")
		host := rapid.SampledFrom([]string{"h.example", "other.example"}).Draw(t, "host")
		path := rapid.SampledFrom([]string{"/", "/a", "/a/", "/a/b", "/c", "/c/b", "/a/b/c"}).Draw(t, "path")
		if p.Covers(o) && o.Match(method, host, path) && !p.Match(method, host, path) {
			t.Fatalf("%v covers %v, which matches %s %s%s, and it does not", p, o, method, host, path)
		}
	})
}
