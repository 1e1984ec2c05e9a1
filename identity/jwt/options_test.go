package jwt

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestOptionsThatAreNone(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no keys", func(o *Options) { o.File = "" }, "the keys come from one place"},
		{"two places", func(o *Options) { o.SecretFile = "secret" }, "the keys come from one place"},
		{"no secret", func(o *Options) { o.Secret = nil }, "users are stored as hashes only"},
		{"no unknown plan", func(o *Options) { o.UnknownPlan = "" }, "go together"},
		{"no plan claim", func(o *Options) { o.PlanClaim = "" }, "go together"},
		{"an empty audience", func(o *Options) { o.Audience = []string{"api", ""} }, "an audience is empty"},
		{"long leeway", func(o *Options) { o.Leeway = 11 * time.Minute }, "a leeway of 11m0s is too long"},
		{"none", func(o *Options) { o.Algorithms = []string{"RS256", "none"} }, `"none" is not an algorithm that is taken: one of ES256, ES384, EdDSA, HS256,`},
		{"a secret without HS256", func(o *Options) { o.File, o.SecretFile, o.Algorithms = "", "s", []string{"RS256"} }, "a secret verifies HS256 alone"},
		{"a header's name", func(o *Options) { o.Header = "X Token" }, "is not a header's name"},
		{"no room", func(o *Options) { o.MaxCached = 1 }, "at least 2"},
		{"http", at("http://id.example.com/jwks.json"), "is not https"},
		{"http to what begins like the loopback", at("http://127.0.0.1.example.com/jwks.json"), "is not https"},
		{"a file's URL", at("file:///etc/jwks.json"), "has no host"},
		{"another scheme", at("ftp://id.example.com/jwks.json"), "is not https"},
		{"a password", at("https://me:hush@id.example.com/"), "holds a name or password"},
		{"no host", at("https:///jwks.json"), "has no host"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(t)
			o.File = "jwks.json"
			c.change(&o)
			_, err := New(o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for _, u := range []string{"https://id.example.com/jwks.json", "http://localhost:8080/", "http://127.0.0.1/", "http://[::1]:1/"} {
		o := options(t)
		at(u)(&o)
		if _, err := New(o); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
}

func at(text string) func(*Options) {
	return func(o *Options) {
		u, err := url.Parse(text)
		if err != nil {
			panic(err)
		}
		o.File, o.URL = "", u
	}
}

func TestUsersByName(t *testing.T) {
	s := newSource(t, ours().set(t), nil)
	for _, name := range []string{"", strings.Repeat("a", MaxSubject+1), "al\xffice", "al\ufffdice"} {
		if who, err := s.For(name); err == nil || who.ID != "" || !strings.Contains(err.Error(), "1 to 256 bytes, as the claim sub has it") {
			t.Errorf("%q: %v, %v", name, who, err)
		}
	}
	for name, want := range map[string]string{"alice": "user:alice", "Zoë 7": "user:Zoë 7", "a\nb": `user:"a\nb"`} {
		if who, err := s.For(name); err != nil || who.Name != want || who.Plan != "" {
			t.Errorf("%q: %v, %v", name, who, err)
		}
	}
	if s.String() != "user" {
		t.Errorf("it is written %q", s.String())
	}
}
