package policy

import (
	"strings"
	"unicode/utf8"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
)

// asking is the bench on which one request is put to its limits. It is used
// again for the next.
type asking struct {
	request *identity.Request
	path    path
	takes   []comporta.Take
	// applied is the index in the verdict of each take.
	applied   []int
	decisions []comporta.Taken
	// answers are what the engine's sources said, by index.
	answers []answer
	sources []identity.Source
	// clause is the one whose pattern PathValues tells the wildcards of.
	clause *clause
	asked  bool // PathValues was asked
	values func(name string) string
}

// answer is what a source said of the request, once it did.
type answer struct {
	identity  string
	shown, is bool
}

func (e *Engine) ask(r *identity.Request) *asking {
	a, _ := e.scratch.Get().(*asking)
	if a == nil {
		a = &asking{sources: e.sources, answers: make([]answer, len(e.sources))}
		a.values = a.value
	}
	a.request, a.path = r, e.policy.Paths.read(r.Path)
	r.PathValues = a.values
	return a
}

// done puts the bench back, with nothing of the request on it.
func (e *Engine) done(a *asking) {
	a.request.PathValues = nil
	for i := range a.takes {
		a.takes[i].Key.Identity = ""
	}
	for i := range a.answers {
		a.answers[i].identity, a.answers[i].is = "", false
	}
	a.takes, a.applied = a.takes[:0], a.applied[:0]
	a.request, a.path, a.clause = nil, path{}, nil
	e.scratch.Put(a)
}

// add puts the request under a clause's limits, as far as it shows their identities.
func (a *asking) add(c *clause, v *Verdict) {
	a.clause = c
	cost := c.cost(a.request, a.path)
	for i := range c.parts {
		p := &c.parts[i]
		id, shown := a.identity(p.source)
		if !shown {
			continue
		}
		v.Applied = grow(v.Applied)
		applied := &v.Applied[len(v.Applied)-1]
		applied.Limit, applied.Rule, applied.Identity, applied.Shown = p.limit, p.rule, id, p.shown
		applied.Fallen = Default
		applied.Lenient = p.limit.Mode == Shadow
		if p.unlimited {
			_, applied.Decision = p.rule.Step(comporta.State{}, v.Now, cost)
			continue
		}
		a.takes = grow(a.takes)
		t := &a.takes[len(a.takes)-1]
		t.Key.Limit, t.Key.Identity, t.Rule = p.limit.Name, id, p.rule
		t.Cost, t.Shadow = cost, p.limit.Mode == Shadow
		a.applied = append(a.applied, len(v.Applied)-1)
	}
}

// grow is s and one more, whose fields are all to be set: they are those of its
// memory's last use.
func grow[T any](s []T) []T {
	if len(s) < cap(s) {
		return s[:len(s)+1]
	}
	var zero T
	return append(s, zero)
}

// identity asks a source, once a request; one that looks at the path's wildcards
// is asked anew for each limit, whose patterns have their own.
func (a *asking) identity(source int) (id string, shown bool) {
	known := &a.answers[source]
	if known.is {
		return known.identity, known.shown
	}
	a.asked = false
	id, shown = a.sources[source].Identity(a.request)
	known.identity, known.shown, known.is = id, shown, !a.asked
	return id, shown
}

// value is the request's PathValues.
func (a *asking) value(name string) string {
	a.asked = true
	matched := a.clause.matched(a.request, a.path)
	if matched == nil {
		return ""
	}
	return a.path.value(matched, name)
}

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
