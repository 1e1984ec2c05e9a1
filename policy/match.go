package policy

import "strings"

// Match says whether a request is one of the pattern's. The host has no port;
// the path is a cleaned, decoded one ([Paths.Clean]). It allocates nothing.
func (p *Pattern) Match(method, host, path string) bool {
	return p.matchRest(method, host) && p.matchPath(path, false)
}

// Value is what a wildcard of the pattern stands for in a path that it matches;
// "" where it has no such wildcard.
func (p *Pattern) Value(path, name string) string { return p.value(path, false, name) }

// matchRest matches all but the path.
func (p *Pattern) matchRest(method, host string) bool {
	if p.method != "" && p.method != method && !(p.method == "GET" && method == "HEAD") {
		return false
	}
	return p.host == "" || strings.EqualFold(p.host, strings.TrimSuffix(host, "."))
}

// matchPath matches the path, or the path with a slash put at its end. What is
// no path, the * of OPTIONS *, is matched where nothing is asked of the path.
func (p *Pattern) matchPath(path string, slash bool) bool {
	if !strings.HasPrefix(path, "/") {
		return !p.narrow()
	}
	w := walk{path, slash}
	for i := range p.segments {
		s := &p.segments[i]
		if s.kind == tail {
			return !w.over()
		}
		if s.kind == end {
			return w.atSlash()
		}
		if w.over() || w.atSlash() {
			return false
		}
		piece := w.next()
		if s.kind == literal && piece != s.text {
			return false
		}
	}
	return w.over()
}

func (p *Pattern) value(path string, slash bool, name string) string {
	w := walk{path, slash}
	for i := range p.segments {
		s := &p.segments[i]
		if s.kind == tail && s.named() && s.text == name && !w.over() {
			return w.rest()
		}
		if s.kind >= tail || w.over() || w.atSlash() {
			return ""
		}
		piece := w.next()
		if s.kind == wildcard && s.text == name {
			return piece
		}
	}
	return ""
}

// A walk goes along a path segment by segment: what is left of it is empty or
// begins with a slash.
type walk struct {
	left  string
	slash bool // a slash follows what is left
}

// over: nothing is left.
func (w *walk) over() bool { return w.left == "" && !w.slash }

// atSlash: a slash at the path's end is left.
func (w *walk) atSlash() bool {
	return w.left == "/" && !w.slash || w.left == "" && w.slash
}

// next is the next segment. There is one: neither over nor atSlash.
func (w *walk) next() string {
	rest := w.left[1:]
	i := strings.IndexByte(rest, '/')
	if i < 0 {
		i = len(rest)
	}
	w.left = rest[i:]
	return rest[:i]
}

// rest is all that is left after its slash.
func (w *walk) rest() string {
	if w.left == "" {
		return ""
	}
	return w.left[1:]
}
