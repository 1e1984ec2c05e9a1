package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// sourceNames are what tells clients apart and needs no more words.
var sourceNames = []string{"api_key", "user", "address", "everyone"}

const perForms = "api_key, user, address, everyone, {header: …}, {path: …}, {claimed: …}, {all: […]}, or a list of them"

// per reads whose budget a request is counted against.
func (r *reader) per(n, match *node, patterns []*policy.Pattern) identity.Source {
	if n.kind != list {
		return r.option(n, match, patterns)
	}
	if len(n.items) == 0 {
		r.fault(n, "per is an empty list", "write "+perForms)
		return nil
	}
	first, whole := make(identity.First, 0, len(n.items)), true
	for _, item := range n.items {
		s := r.option(item, match, patterns)
		switch before, why := r.before(first, s); {
		case s == nil:
			whole = false
			continue
		case why != "":
			hint := fmt.Sprintf("remove it, or write it before %s", before)
			if why == twice {
				hint = "remove one"
			}
			r.fault(item, fmt.Sprintf("per: %s is never reached: %s", s, why), hint)
		}
		first = append(first, s)
	}
	switch {
	case !whole:
		return nil
	case len(first) == 1:
		return first[0]
	}
	return first
}

const twice = "it is named twice"

// before finds what every request that shows s shows too, and takes first.
func (r *reader) before(first identity.First, s identity.Source) (before identity.Source, why string) {
	if s == nil {
		return nil, ""
	}
	shown := leaves(s)
	for _, earlier := range first {
		needs := slices.DeleteFunc(leaves(earlier), always)
		switch {
		case slices.Equal(leaves(earlier), shown):
			return earlier, twice
		case len(needs) == 0:
			return earlier, fmt.Sprintf("every request has the %s before it", earlier)
		case !slices.ContainsFunc(needs, func(one identity.Source) bool { return !slices.Contains(shown, one) }):
			return earlier, fmt.Sprintf("who shows it is counted by the %s before it", earlier)
		}
	}
	return nil, ""
}

// leaves are what a source is made of.
func leaves(s identity.Source) []identity.Source {
	if all, ok := s.(identity.All); ok {
		return slices.Clone(all)
	}
	return []identity.Source{s}
}

// always says whether every request under a limit shows a source.
func always(s identity.Source) bool {
	switch s.(type) {
	case identity.Everyone, *identity.Address, identity.Path:
		return true
	}
	return false
}

// option reads one identity, or several as one: {all: […]}.
func (r *reader) option(n, match *node, patterns []*policy.Pattern) identity.Source {
	e, ok := n.entry("all")
	switch {
	case !ok:
		return r.perSource(n, match, patterns)
	case len(n.entries) > 1:
		r.fault(n, "per: other words stand beside all", "write them into all, each in braces of its own")
		return nil
	case e.value.kind != list || len(e.value.items) < 2:
		r.fault(e.value, "all is no list of two identities or more", "write {all: [{claimed: username}, address]}, or the one without all")
		return nil
	}
	all, whole := identity.All{}, true
	for _, item := range e.value.items {
		switch s := r.perSource(item, match, patterns); {
		case s == nil:
			whole = false
		case s == identity.Source(identity.Everyone{}):
			r.fault(item, "all: everyone tells nobody apart", "leave it out")
		case slices.Contains(all, s):
			r.fault(item, fmt.Sprintf("all: %s is named twice", s), "remove one")
		default:
			all = append(all, s)
		}
	}
	if !whole {
		return nil
	}
	return all
}

// perSource reads one way to tell clients apart.
func (r *reader) perSource(n, match *node, patterns []*policy.Pattern) identity.Source {
	switch {
	case n.kind == text:
		said, ok := r.choice(n, "per", sourceNames...)
		if !ok {
			return nil
		}
		return r.named(n, said)
	case n.kind != mapping || len(n.entries) == 0:
		if n.kind == mapping {
			n = &node{place: n.place} // empty, as good as nothing
		}
		r.wrongKind(n, "per", perForms)
		return nil
	}
	for _, e := range n.entries {
		switch {
		case slices.Contains(sourceNames, e.key.text):
			r.fault(e.key, fmt.Sprintf("per: %s is a word by itself", e.key.text), "write per: "+e.key.text)
			return nil
		case e.key.text == "all":
			r.fault(e.key, "all stands inside all", "write what is in it there")
			return nil
		}
	}
	words := r.mapping(n, "per", sourceWords)
	switch kind := r.exactly(n, words, "per", "header", "path", "claimed"); {
	case kind == "", !r.belongs(words, kind):
		return nil
	case kind == "header":
		return r.header(words["header"].value, words["from"].value)
	case kind == "path":
		return r.perPath(words["path"].value, n, match, patterns)
	}
	return r.claimed(words["claimed"].value, words["exact"].value)
}

// exactly is the one of some words that a mapping has; "" where it has none or
// more, which is a problem.
func (r *reader) exactly(n *node, words map[string]entry, what string, names ...string) (found string) {
	for _, name := range names {
		_, is := words[name]
		switch {
		case is && found != "":
			r.fault(n, fmt.Sprintf("%s names two identities, %s and %s", what, found, name), "write one of them")
			return ""
		case is:
			found = name
		}
	}
	if found == "" && len(words) > 0 {
		r.fault(n, what+" names no identity", "write one of "+strings.Join(names, ", "))
	}
	return found
}

// companions are words that stand beside one other alone.
var companions = map[string]string{"from": "header", "exact": "claimed"}

// belongs says whether each word may stand beside the one that names the identity.
func (r *reader) belongs(words map[string]entry, kind string) bool {
	for _, name := range slices.Sorted(maps.Keys(companions)) {
		if e, ok := words[name]; ok && companions[name] != kind {
			r.fault(e.key, fmt.Sprintf("%s is for {%s: …}, not for {%s: …}", name, companions[name], kind), "leave it out")
			return false
		}
	}
	return true
}

// perPath reads the name of a wildcard, which every pattern of the limit must have.
func (r *reader) perPath(n, per, match *node, patterns []*policy.Pattern) identity.Source {
	said, ok := r.text(n, "path", "id")
	if !ok {
		return nil
	}
	source := r.path(n, said)
	if source == nil {
		return nil
	}
	if match == nil {
		r.fault(per, fmt.Sprintf("per {path: %s} has no pattern to take it from", said), fmt.Sprintf("write match: with a pattern that has {%s}, such as \"/items/{%s}\"", said, said))
		return nil
	}
	for _, p := range patterns {
		if !slices.Contains(p.Wildcards(), said) {
			r.fault(n, fmt.Sprintf("per {path: %s}: the pattern %q has no {%s}", said, p, said), fmt.Sprintf("name a wildcard of every pattern in match, or write {%s} into this one", said))
		}
	}
	return source
}
