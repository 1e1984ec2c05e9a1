package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxDepth bounds the nesting of a file; the deepest thing that a policy says is
// seven deep. The YAML parser recurses, so the bound is checked before it runs.
const maxDepth = 32

// maxIndent bounds the columns at which nested blocks may begin.
const maxIndent = 100

// A place is where something is written: in a file, or, with no line, a flag.
type place struct {
	file      string
	line, col int
}

type kind uint8

const (
	nothing kind = iota // no value, null or ~
	text                // plain or quoted
	number              // plain, whole or not, in whatever base
	boolean             // true or false
	list                //
	mapping             //
)

var kinds = [...]string{nothing: "empty", text: "text", number: "a number", boolean: "true or false", list: "a list", mapping: "a mapping"}

// A node is a piece of a file: what YAML leaves when its cleverness is refused.
type node struct {
	place
	kind    kind
	text    string // a scalar as it is written, without its quotes
	quoted  bool
	items   []*node // of a list
	entries []entry // of a mapping, in order, doubles included
}

type entry struct{ key, value *node }

// entry is that of a key, and whether n is a mapping that has it.
func (n *node) entry(key string) (entry, bool) {
	i := slices.IndexFunc(n.entries, func(e entry) bool { return e.key.text == key })
	if i < 0 {
		return entry{}, false
	}
	return n.entries[i], true
}

// A form is what is read as one piece of YAML, and how problems speak of it.
type form struct {
	what               string
	empty              string // what to do where there is nothing
	tooLarge, tooWordy string
	// secret is that nothing of it may be repeated.
	secret bool
}

var policyForm = form{
	what: "a policy", empty: "a policy needs at least `limits:`; write `limits: []` to limit nothing",
	tooLarge: "the file is larger than 256 KiB", tooWordy: fmt.Sprintf("the file has more than %d words", maxWords),
}

// shift puts a node, and all in it, so many lines further down.
func (n *node) shift(lines int) {
	n.line += lines
	for _, item := range n.items {
		item.shift(lines)
	}
	for _, e := range n.entries {
		e.key.shift(lines)
		e.value.shift(lines)
	}
}

// readTree reads one YAML document, or says why it is none. Anchors, aliases,
// tags, merge keys and directives are refused before anything is built of them,
// so that no file unfolds to more than what it shows.
func readTree(name string, data []byte, f *form) (*node, Problems) {
	top := place{file: name, line: 1, col: 1}
	if len(data) > maxFile {
		return nil, Problems{top.problem(f.tooLarge, f.isIt())}
	}
	if ps := unprintable(name, data); ps != nil {
		return nil, ps
	}
	tokens := lexer.Tokenize(string(bytes.TrimPrefix(data, []byte("\ufeff"))))
	keepInside(tokens, data)
	if ps := tooClever(name, tokens, f); ps != nil {
		return nil, ps
	}
	file, err := parse(tokens)
	if err != nil {
		return nil, Problems{syntaxProblem(name, err, f.secret)}
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			return tree(name, doc.Body), nil
		}
	}
	return nil, Problems{top.problem("the file is empty", f.empty)}
}

func (f *form) isIt() string { return "is it the right file? This is read as " + f.what }

// keepInside puts a token that the lexer placed past its line's end at that end:
// it counts some escapes and tabs twice.
func keepInside(tokens token.Tokens, data []byte) {
	lines := bytes.Split(data, []byte("\n"))
	for _, tk := range tokens {
		if at := tk.Position; at != nil {
			at.Line = max(1, min(at.Line, len(lines)))
			at.Column = max(1, min(at.Column, utf8.RuneCount(lines[at.Line-1])+1))
		}
	}
}

// unprintable finds bytes that no policy has: what is no text, and tabs that indent.
func unprintable(name string, data []byte) Problems {
	at, indent := place{file: name, line: 1, col: 1}, true
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return Problems{at.problem("the file is not UTF-8 text", "save it as UTF-8")}
		case r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f:
			return Problems{at.problem(fmt.Sprintf("a control character (U+%04X) is in the file", r), "remove it")}
		case r == '\r' && !bytes.HasPrefix(data[i:], []byte("\r\n")):
			return Problems{at.problem("a carriage return stands alone", "end lines with a line feed")}
		case r == '\t' && indent:
			return Problems{at.problem("a tab indents this line", "indent with spaces")}
		case r == '\n':
			at.line, at.col = at.line+1, 0
		}
		indent = r == '\n' || indent && r == ' '
		at.col++
		i += size
	}
	return nil
}

// tooClever finds what a policy has no use for, and nesting past the bound.
func tooClever(name string, tokens token.Tokens, f *form) (ps Problems) {
	open, line, words, started := 0, 0, 0, false
	for _, tk := range tokens {
		at := placeOf(name, tk)
		first := at.line != line
		line = at.line
		switch tk.Type {
		case token.AnchorType, token.AliasType:
			ps = append(ps, at.problem("YAML anchors and aliases are not understood here", `write the value out; text that begins with & or * goes in quotes`))
		case token.TagType:
			ps = append(ps, at.problem("YAML tags are not understood here", "leave it out; text that begins with ! goes in quotes"))
		case token.MergeKeyType:
			ps = append(ps, at.problem("YAML merge keys (<<) are not understood here", "write the words out"))
		case token.MappingKeyType:
			ps = append(ps, at.problem("YAML complex keys (?) are not understood here", "write `word: value`"))
		case token.DirectiveType:
			return append(ps, at.problem("YAML directives (%) are not understood here", "remove the line"))
		case token.DocumentHeaderType, token.DocumentEndType:
			if started {
				return append(ps, at.problem("a second YAML document begins here", "a policy is one document: remove the line, or split the file"))
			}
		case token.MappingValueType:
			if words++; words > maxWords {
				return append(ps, at.problem(f.tooWordy, f.isIt()))
			}
		case token.MappingStartType, token.SequenceStartType:
			open++
		case token.MappingEndType, token.SequenceEndType:
			open--
		}
		block := open == 0 && (first || tk.Type == token.SequenceEntryType) && tk.Type != token.CommentType
		if open > maxDepth || block && at.col > maxIndent {
			return append(ps, at.problem("this is nested too deep", "a policy is at most a few levels deep"))
		}
		started = started || tk.Type != token.CommentType && tk.Type != token.DocumentHeaderType
	}
	return ps
}

// parse runs the YAML parser. It is told to let doubles of keys through, which
// are reported with everything else. The parser is not ours, so a fault in it is
// made an error: a gateway that runs must not fall over a file that it re-reads.
func parse(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("it is not understood as YAML")
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// syntaxProblem says what the parser says; of a secret file only what holds nothing
// of it.
func syntaxProblem(name string, err error, secret bool) Problem {
	var syntax yaml.Error
	if !errors.As(err, &syntax) {
		return place{file: name, line: 1, col: 1}.problem(err.Error(), "check it with a YAML linter")
	}
	tk := syntax.GetToken()
	at := placeOf(name, tk)
	said := syntax.GetMessage()
	switch {
	case strings.Contains(said, "must be specified") && tk.Type == token.MappingStartType:
		return at.problem("a brace opens inside a list item", `put a pattern with braces in quotes: "GET /reports/{id}"`)
	case strings.Contains(said, "end token"):
		return at.problem("a bracket opens here and is never closed", "close it with } or ]")
	case strings.Contains(said, "reserved character") && !secret:
		return at.problem("not YAML: "+said, "put the text in quotes")
	case strings.Contains(said, "mapping value is not allowed"):
		return at.problem("not YAML: a second colon in one line, or a line indented more than its neighbours", "put text with a colon in quotes; give words of one mapping the same indentation")
	case strings.Contains(said, "value is not allowed"):
		return at.problem("not YAML: something stands here that belongs to no word", "check the indentation and the line before")
	}
	if secret {
		said = "something here is not understood"
	}
	return at.problem("not YAML: "+said, "check the indentation, quotes and brackets here and in the line before")
}

func placeOf(name string, tk *token.Token) place {
	if tk == nil || tk.Position == nil {
		return place{file: name, line: 1, col: 1}
	}
	return place{name, max(tk.Position.Line, 1), max(tk.Position.Column, 1)}
}

// tree takes over the parser's nodes. Their depth is bounded by tooClever.
func tree(name string, from ast.Node) *node {
	n := &node{place: placeOf(name, from.GetToken())}
	switch from := from.(type) {
	case *ast.MappingNode:
		n.kind = mapping
		for _, pair := range from.Values {
			n.entries = append(n.entries, treePair(name, pair))
		}
		if !from.IsFlowStyle && len(n.entries) > 0 {
			n.place = n.entries[0].key.place
		}
	case *ast.MappingValueNode:
		n.kind = mapping
		n.entries = []entry{treePair(name, from)}
		n.place = n.entries[0].key.place
	case *ast.SequenceNode:
		n.kind = list
		for i, value := range from.Values {
			item := tree(name, value)
			if item.kind == nothing && !from.IsFlowStyle {
				item.place = placeOf(name, from.Entries[i].Start)
			}
			n.items = append(n.items, item)
		}
	case *ast.LiteralNode:
		n.kind, n.quoted = text, true
		n.text = from.Value.Value
		n.place = placeOf(name, from.Start)
	case *ast.NullNode:
		n.kind = nothing
	case *ast.BoolNode:
		n.kind, n.text = boolean, from.Token.Value
	case *ast.IntegerNode:
		n.kind, n.text = number, from.Token.Value
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = number, from.GetToken().Value
	default:
		n.kind, n.text = text, from.GetToken().Value
		n.quoted = from.GetToken().Type != token.StringType
	}
	return n
}

func treePair(name string, pair *ast.MappingValueNode) entry {
	e := entry{tree(name, pair.Key), tree(name, pair.Value)}
	if e.value.kind == nothing {
		e.value.place = e.key.place // where an empty value is, nobody can see
	}
	return e
}

// problem is a problem at a place. What it repeats of the file is cut where it is long.
func (p place) problem(text, hint string) Problem {
	const most = 400
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return Problem{File: p.file, Line: p.line, Column: p.col, Text: text, Hint: hint}
}
