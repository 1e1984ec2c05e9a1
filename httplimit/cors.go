package httplimit

import (
	"net/http"
	"slices"
	"strings"

	"github.com/comporta/comporta/policy"
)

// cors lets pages of other origins read what an answer tells (Fetch, "CORS
// protocol"). A nil cors does nothing.
type cors struct {
	any     bool
	origins []string
	names   []string // of the fields that scripts may read
	list    string   // the same as one line
}

func newCORS(p *policy.Policy, sets sets) *cors {
	if p.CORS == nil {
		return nil
	}
	origins := p.CORS.Origins
	c := &cors{any: slices.Contains(origins, "*"), origins: slices.Clone(origins)}
	if sets.triple >= 0 {
		c.names = append(c.names, "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
	}
	if sets.draft11 >= 0 {
		c.names = append(c.names, "RateLimit-Policy", "RateLimit")
	}
	if sets.x >= 0 {
		c.names = append(c.names, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
	}
	for _, l := range p.Limits {
		if l.WarnHeader != "" && !slices.Contains(c.names, l.WarnHeader) {
			c.names = append(c.names, l.WarnHeader)
		}
	}
	c.names = append(c.names, "Retry-After")
	c.list = strings.Join(c.names, ", ")
	return c
}

// allow lets the request's origin read an answer of our own.
func (c *cors) allow(h http.Header, r *http.Request) {
	if c == nil {
		return
	}
	switch origin := r.Header.Get("Origin"); {
	case c.any:
		h["Access-Control-Allow-Origin"] = []string{"*"}
	default:
		vary(h)
		if !slices.Contains(c.origins, origin) {
			return
		}
		h["Access-Control-Allow-Origin"] = []string{origin}
	}
	c.expose(h)
}

// vary says that the answer depends on the origin.
func vary(h http.Header) {
	lines := h["Vary"]
	for name := range tokens(lines) {
		if name == "*" || strings.EqualFold(name, "Origin") {
			return
		}
	}
	h["Vary"] = []string{strings.Join(append(slices.Clip(lines), "Origin"), ", ")}
}

// expose adds our fields to those that scripts may read, where an origin is allowed.
func (c *cors) expose(h http.Header) {
	if c == nil || len(h["Access-Control-Allow-Origin"]) == 0 {
		return
	}
	lines := h["Access-Control-Expose-Headers"]
	if len(lines) == 0 {
		h["Access-Control-Expose-Headers"] = []string{c.list}
		return
	}
	var names []string
	add := func(name string) {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			names = append(names, name)
		}
	}
	for name := range tokens(lines) {
		add(name)
	}
	for _, name := range c.names {
		add(name)
	}
	h["Access-Control-Expose-Headers"] = []string{strings.Join(names, ", ")}
}

// tokens are the members of a list of names that may be on several lines.
func tokens(lines []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, line := range lines {
			for name := range strings.SplitSeq(line, ",") {
				if name = strings.TrimSpace(name); name != "" && !yield(name) {
					return
				}
			}
		}
	}
}
