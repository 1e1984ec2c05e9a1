package config

import (
	"errors"
	"fmt"
	"strings"
)

// QuickOptions are a policy of one limit in a few words, as flags give them.
type QuickOptions struct {
	// Upstream is the API's URL, http://127.0.0.1:9000.
	Upstream string
	// Limit is the limit's text, 100/min burst 20. Algorithm is the name of its
	// algorithm; token_bucket when empty.
	Limit, Algorithm string
	// Per is address (also when empty), everyone or header:NAME.
	Per string
	// Store is the address of Redis; memory when empty.
	Store string
}

// Quick is a config without a file, of one limit named "default". It is checked
// as a file is; problems have the flag (--upstream, --limit, --algorithm, --per, --store)
// for a file, and no line.
func Quick(q QuickOptions) (*Config, error) {
	per, problems := quickPer(q.Per)
	limit := []entry{
		{key("name"), given("", "default")},
		{key("per"), per},
		{key("limit"), given("--limit", q.Limit)},
	}
	if q.Algorithm != "" {
		limit = append(limit, entry{key("algorithm"), given("--algorithm", q.Algorithm)})
	}
	server := &node{kind: mapping, entries: []entry{{key("upstream"), given("--upstream", q.Upstream)}}}
	limits := &node{kind: list, items: []*node{{kind: mapping, entries: limit}}}
	top := []entry{{key("server"), server}, {key("limits"), limits}}
	if q.Store != "" {
		top = append(top, entry{key("store"), &node{kind: mapping, entries: []entry{{key("redis"), given("--store", q.Store)}}}})
	}
	c, err := Options{}.read("", &node{kind: mapping, entries: top})
	var more Problems
	if errors.As(err, &more) || len(problems) > 0 {
		return nil, append(problems, more...)
	}
	return c, err
}

func key(name string) *node { return given("", name) }

// given is a text that was given with a flag.
func given(name, said string) *node {
	return &node{place: place{file: name}, kind: text, text: said}
}

// quickPer reads address, everyone or header:NAME. What is neither is a problem,
// and stands as address, so that the other flags are checked too.
func quickPer(said string) (*node, Problems) {
	kind, name, named := strings.Cut(said, ":")
	switch {
	case said == "":
		return given("--per", "address"), nil
	case said == "header" || !named && strings.Contains(said, "-"):
		return given("", "address"), Problems{place{file: "--per"}.problem(fmt.Sprintf("unknown %q", said), "a header is written header:NAME, as header:X-API-Key")}
	case !named:
		return given("--per", said), nil
	case kind == "header":
		return &node{place: place{file: "--per"}, kind: mapping, entries: []entry{{given("--per", kind), given("--per", name)}}}, nil
	case kind == "path":
		return given("", "address"), Problems{place{file: "--per"}.problem(
			fmt.Sprintf("path:%s needs a pattern to take {%s} from", name, name), "write a policy file, with match: and per: {path: "+name+"}")}
	}
	return given("", "address"), Problems{place{file: "--per"}.problem(fmt.Sprintf("unknown %q", kind+":"), "one of address, everyone, header:NAME")}
}
