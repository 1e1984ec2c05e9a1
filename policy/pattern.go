package policy

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// A Pattern says which requests: [METHOD ][HOST]/[PATH], as the patterns of Go's
// http.ServeMux, and it matches what those match. GET stands for HEAD too; a
// segment {name} is a wildcard, {name...} at the end one for all the rest; a
// path that ends in a slash matches all below it, in /{$} itself alone.
//
// It differs in two things. All patterns that match a request apply, where a
// ServeMux takes the most specific one, so patterns may overlap. And hosts are
// compared without regard to case and to a dot at their end, so that no
// spelling of a host escapes its limits.
type Pattern struct {
	text     string
	method   string // "" is any
	host     string // lower case; "" is any
	segments []segment
}

// A segment is one piece of a pattern between slashes. The last may be a tail:
// a wildcard for all the rest, without a name after a slash at the end.
type segment struct {
	text string // the literal, or the wildcard's name
	kind kind
}

type kind uint8

const (
	literal kind = iota
	wildcard
	tail // {name...}, or the rest after a slash at the end
	end  // {$}: a slash at the end
)

// ParsePattern reads a pattern. It is strict: what could never match is an
// error, which says what is wrong and where.
func ParsePattern(text string) (*Pattern, error) {
	p := &Pattern{text: text}
	if err := p.parse(); err != nil {
		return nil, fmt.Errorf("pattern %q: %w", text, err)
	}
	return p, nil
}

func (p *Pattern) parse() error {
	method, rest, found := p.text, "", false
	if i := strings.IndexAny(p.text, " \t"); i >= 0 {
		method, rest, found = p.text[:i], strings.TrimLeft(p.text[i:], " \t"), true
	}
	if !found {
		method, rest = "", p.text
	}
	if found {
		if err := checkMethod(method); err != nil {
			return err
		}
		p.method = method
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		if rest == strings.ToUpper(rest) && checkMethod(rest) == nil {
			return fmt.Errorf("a method without a path: write %s / for all its requests", rest)
		}
		return fmt.Errorf("no path: it begins with a slash, as in GET /search")
	}
	if err := p.parseHost(rest[:slash]); err != nil {
		return err
	}
	return p.parsePath(rest[slash:])
}

// methods are those that a pattern most likely means where one stands for a host.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}

func checkMethod(m string) error {
	switch {
	case m == "":
		return fmt.Errorf("it begins with a blank")
	case strings.Contains(m, "/"):
		return fmt.Errorf("a blank after the path begins: a pattern has neither query nor blanks there, write %%20")
	}
	for i := range len(m) {
		c := m[i]
		if 'a' <= c && c <= 'z' {
			return fmt.Errorf("method %q: methods are written in capitals, as %s", m, strings.ToUpper(m))
		}
		if !('A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return fmt.Errorf("method %q is none", m)
		}
	}
	return nil
}

func (p *Pattern) parseHost(host string) error {
	switch {
	case host == ".":
		return errors.New("a dot alone is no host: leave it out for any, or write its name")
	case strings.Contains(host, "{"):
		return fmt.Errorf("the host %q has a wildcard: only paths have them", host)
	case strings.ContainsAny(host, " \t"):
		return fmt.Errorf("%q before the path is neither one method nor a host", host)
	case slices.Contains(methods, host):
		return fmt.Errorf("a method without a blank behind it: write %s and the path, as GET /search", host)
	case strings.Contains(host, "*"):
		return fmt.Errorf("the host %q has a *, and no host's name has one: write a pattern for each host", host)
	case strings.Contains(host, ":") && !strings.HasSuffix(host, "]"):
		return fmt.Errorf("the host %q has a port: ports are not looked at, leave it out", host)
	}
	p.host = strings.ToLower(strings.TrimSuffix(host, "."))
	return nil
}

func (p *Pattern) parsePath(path string) error {
	if i := strings.IndexAny(path, "?# \t"); i >= 0 {
		return fmt.Errorf("%q in the path: a pattern has neither query nor blanks", path[i:i+1])
	}
	pieces := strings.Split(path[1:], "/")
	for i, piece := range pieces {
		last := i == len(pieces)-1
		s, err := parseSegment(piece, last)
		if err != nil {
			return err
		}
		if s.named() && slices.ContainsFunc(p.segments, func(o segment) bool { return o.named() && o.text == s.text }) {
			return fmt.Errorf("two wildcards are named %q", s.text)
		}
		p.segments = append(p.segments, s)
	}
	return nil
}

func (s segment) named() bool { return s.kind == wildcard || s.kind == tail && s.text != "" }

func parseSegment(piece string, last bool) (segment, error) {
	if piece == "" {
		if last {
			return segment{kind: tail}, nil
		}
		return segment{}, fmt.Errorf("an empty segment (//) can never match: paths are cleaned first")
	}
	if !strings.ContainsAny(piece, "{}") {
		return parseLiteral(piece)
	}
	name, ok := strings.CutPrefix(piece, "{")
	name, closed := strings.CutSuffix(name, "}")
	if !ok || !closed {
		return segment{}, fmt.Errorf("segment %q: a wildcard is a whole segment, as {id}", piece)
	}
	if name == "$" {
		if !last {
			return segment{}, fmt.Errorf("{$} stands at the end only")
		}
		return segment{kind: end}, nil
	}
	kind := wildcard
	if rest, all := strings.CutSuffix(name, "..."); all {
		if !last {
			return segment{}, fmt.Errorf("{%s} stands at the end only", name)
		}
		name, kind = rest, tail
	}
	for i, c := range name {
		if c != '_' && !unicode.IsLetter(c) && (i == 0 || !unicode.IsDigit(c)) {
			return segment{}, fmt.Errorf("wildcard {%s}: a name is letters and digits, a letter first", name)
		}
	}
	if name == "" {
		return segment{}, fmt.Errorf("a wildcard without a name: write {id}")
	}
	return segment{name, kind}, nil
}

func parseLiteral(piece string) (segment, error) {
	text, err := url.PathUnescape(piece)
	switch {
	case strings.Contains(piece, "*"):
		return segment{}, fmt.Errorf("segment %q: a * stands for nothing but itself: write {id} for any segment, a slash at the end for all below, or %%2A for the sign", piece)
	case err != nil:
		return segment{}, fmt.Errorf("segment %q: a %% is followed by two hexadecimal digits; write %%25 for the sign itself", piece)
	case text == "." || text == "..":
		return segment{}, fmt.Errorf("segment %q can never match: paths are cleaned first", piece)
	case strings.Contains(text, "/"):
		return segment{}, fmt.Errorf("segment %q can never match: an encoded slash is no part of a segment", piece)
	}
	return segment{text: text}, nil
}

// String is the pattern as it was written.
func (p *Pattern) String() string { return p.text }

// Wildcards are the names of its wildcards, in order.
func (p *Pattern) Wildcards() []string {
	var names []string
	for _, s := range p.segments {
		if s.named() {
			names = append(names, s.text)
		}
	}
	return names
}

// narrow says whether it asks anything of the path.
func (p *Pattern) narrow() bool { return len(p.segments) > 1 || p.segments[0].kind != tail }

// fold is the pattern for paths whose case is folded.
func (p *Pattern) fold() *Pattern {
	folded := *p
	folded.segments = slices.Clone(p.segments)
	for i := range folded.segments {
		if s := &folded.segments[i]; s.kind == literal {
			s.text = fold(s.text)
		}
	}
	return &folded
}
