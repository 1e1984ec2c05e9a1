package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Problem is one thing wrong with a file, or, where it has a Code, one thing
// that is allowed and probably not meant.
type Problem struct {
	File string
	// Line and Column count from 1, columns in characters; 0 when the problem has no place.
	Line, Column int
	// Code names a warning for good: W-TRUST-ALL. Empty for an error.
	Code string
	// Text says what is wrong, Hint what to do about it.
	Text, Hint string
}

// String is file:line:column: text (hint).
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if p.Code != "" {
		b.WriteString(p.Code + ": ")
	}
	b.WriteString(p.Text)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems are all that is wrong with a file, in the order of their places.
type Problems []Problem

// Error is one problem a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
