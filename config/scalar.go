package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/comporta/comporta"
)

// A reader goes over a tree, makes the config of it and gathers what is wrong.
type reader struct {
	options  Options
	config   *Config
	problems Problems
	details  []detail // of the limits, in order

	plansNamed []*node // by identities, before the plans are read

	// Where warnings go: the list of limits, or the file where it is missing; the preflight limit.
	limitsAt, preflightAt *node
	// Where the save file is written; nil where it is not.
	saveAt *node
}

func (r *reader) fault(n *node, text, hint string) {
	r.problems = append(r.problems, n.problem(text, hint))
}

func (r *reader) warn(n *node, code, text, hint string) {
	p := n.problem(text, hint)
	p.Code = code
	r.config.Warnings = append(r.config.Warnings, p)
}

// wrongKind says that a value is of another kind than wanted. The value itself
// is not repeated: it may be a secret in the wrong place.
func (r *reader) wrongKind(n *node, what, want string) {
	is := kinds[n.kind]
	switch {
	case n.quoted:
		is = "text in quotes"
	case n.kind == text && strings.Contains(n.text, ":") && strings.HasPrefix(want, "a mapping"):
		want += "; is the space after a colon missing?"
	}
	r.fault(n, fmt.Sprintf("%s is %s", what, is), "write "+want)
}

// text reads text that is not empty. A plain number or boolean is no text.
func (r *reader) text(n *node, what, example string) (string, bool) {
	switch {
	case n.kind == number || n.kind == boolean:
		r.fault(n, fmt.Sprintf("%s is %s", what, kinds[n.kind]), fmt.Sprintf("write text, such as %s; what looks like a number goes in quotes", example))
	case n.kind != text:
		r.wrongKind(n, what, "text, such as "+example)
	case strings.TrimSpace(n.text) == "":
		r.fault(n, what+" is empty", "write it like "+example)
	case strings.ContainsFunc(n.text, unicode.IsControl):
		r.fault(n, what+" has a line feed or another control character in it", "write it like "+example)
	case strings.Contains(n.text, "${"):
		r.fault(n, "${…} is not expanded", "write the value itself: a policy reads nothing from the environment")
	default:
		return n.text, true
	}
	return "", false
}

// choice reads one of a few words.
func (r *reader) choice(n *node, what string, choices ...string) (string, bool) {
	list := strings.Join(choices, ", ")
	if n.kind != text {
		r.wrongKind(n, what, "one of "+list)
		return "", false
	}
	if slices.Contains(choices, n.text) {
		return n.text, true
	}
	hint := "one of " + list
	if near := nearest(n.text, choices); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	r.fault(n, fmt.Sprintf("unknown %s %q", what, n.text), hint)
	return "", false
}

// boolean reads true or false: not yes, no, on, off, and nothing in quotes.
func (r *reader) boolean(n *node, what string) bool {
	if n.kind != boolean {
		r.wrongKind(n, what, "true or false")
		return false
	}
	return strings.EqualFold(n.text, "true")
}

// whole reads a whole number of decimal digits, with "_" between them if one likes.
func (r *reader) whole(n *node, what string, least, most int64) (int64, bool) {
	if n.kind == text && !n.quoted && digits(n.text) { // too long for the YAML library to call it a number
		r.fault(n, what+" is too large", fmt.Sprintf("from %d to %d", least, most))
		return 0, false
	}
	if n.kind != number {
		want := fmt.Sprintf("a whole number from %d to %d", least, most)
		if n.quoted && digits(n.text) {
			want += ", without quotes"
		}
		r.wrongKind(n, what, want)
		return 0, false
	}
	plain := strings.TrimPrefix(n.text, "-")
	if !digits(plain) || len(plain) > 1 && plain[0] == '0' {
		r.fault(n, fmt.Sprintf("%s is %s", what, n.text), "write a whole number in decimal digits, without fraction, sign or leading zero")
		return 0, false
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(n.text, "_", ""), 10, 64)
	if err != nil || v < least || v > most {
		r.fault(n, fmt.Sprintf("%s of %s is out of range", what, n.text), fmt.Sprintf("from %d to %d", least, most))
		return 0, false
	}
	return v, true
}

// digits says whether s is digits with single "_" between them.
func digits(s string) bool {
	ok := s != "" && s[0] != '_' && s[len(s)-1] != '_' && !strings.Contains(s, "__")
	return ok && strings.Trim(s, "0123456789_") == ""
}

// maxSize bounds sizes in bytes: 1 TiB.
const maxSize = 1 << 40

// size reads bytes: a whole number, or one with KiB, MiB or GiB.
func (r *reader) size(n *node, what string, most int64) (int64, bool) {
	if n.kind != text || n.quoted && digits(n.text) {
		return r.whole(n, what, 1, most)
	}
	for i, unit := range [...]string{"KiB", "MiB", "GiB"} {
		count, found := strings.CutSuffix(n.text, unit)
		if !found || !digits(count) {
			continue
		}
		v, err := strconv.ParseInt(strings.ReplaceAll(count, "_", ""), 10, 64)
		shift := 10 * (i + 1)
		if err != nil || v < 1 || v > most>>shift {
			r.fault(n, fmt.Sprintf("%s of %s is out of range", what, n.text), "from 1 to "+formatSize(most))
			return 0, false
		}
		return v << shift, true
	}
	r.fault(n, fmt.Sprintf("%s: %q is not a size", what, n.text), "write bytes, or 64KiB, 10MiB, 1GiB")
	return 0, false
}

// formatSize prints bytes exactly, in the unit that fits.
func formatSize(bytes int64) string {
	for i, unit := range [...]string{"GiB", "MiB", "KiB"} {
		if shift := 10 * (3 - i); bytes > 0 && bytes%(1<<shift) == 0 {
			return strconv.FormatInt(bytes>>shift, 10) + unit
		}
	}
	return count(bytes, "byte")
}

// duration reads a duration longer than nothing.
func (r *reader) duration(n *node, what string) (time.Duration, bool) {
	if n.kind == number {
		r.fault(n, fmt.Sprintf("%s of %s has no unit", what, n.text), "write it like 500ms, 10s, 2m30s")
		return 0, false
	}
	said, ok := r.text(n, what, "10s")
	if !ok {
		return 0, false
	}
	d, err := comporta.ParseDuration(said)
	if err != nil {
		r.limitError(err, map[string]*node{"duration": n}, n, what)
		return 0, false
	}
	if d == 0 || d > math.MaxInt64/4 {
		r.fault(n, fmt.Sprintf("%s of %s is out of range", what, said), "write a duration longer than nothing, like 10s")
		return 0, false
	}
	return d, true
}

// several reads a list, or one item without brackets. An empty list is fine.
func (r *reader) several(n *node, what string) []*node {
	switch n.kind {
	case list:
		return n.items
	case text:
		return []*node{n}
	}
	r.wrongKind(n, what, "a list, as [a, b], or one item")
	return nil
}
