package policy

import (
	"strings"
	"unicode/utf8"
)

// A path is a request's path as the policy's settings have it matched.
type path struct {
	text string
	// slashes: it is to be matched with a slash at its end too.
	slashes bool
}

// read is the path in lower case where case is folded, and without the slash at
// its end where that is ignored.
func (p Paths) read(decoded string) path {
	if p.FoldCase {
		decoded = fold(decoded)
	}
	if p.IgnoreTrailingSlash && len(decoded) > 1 {
		return path{strings.TrimSuffix(decoded, "/"), true}
	}
	return path{text: decoded}
}

// fold makes all spellings of a text that differ in case one. It allocates where
// there are capitals or letters beyond ASCII.
func fold(s string) string {
	for i := range len(s) {
		if c := s[i]; 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf {
			// Upper case first: some letters, such as ſ and s, share that only.
			return strings.ToLower(strings.ToUpper(s))
		}
	}
	return s
}

func (p path) matches(pattern *Pattern) bool {
	return pattern.matchPath(p.text, false) || p.slashes && pattern.matchPath(p.text, true)
}

func (p path) value(pattern *Pattern, name string) string {
	slash := p.slashes && !pattern.matchPath(p.text, false)
	return pattern.value(p.text, slash, name)
}
