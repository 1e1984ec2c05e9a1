package identity

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// canonical is the one spelling of a claimed value. It is its own canonical
// spelling.
//
// Invisible characters (soft hyphens, joiners, marks of direction, controls) go
// since the collations of databases have no weight for them: al\u00adice is found
// as alice. One step can make work for another (a fold that composes, a blank
// that an invisible character hid), so they are taken until nothing changes.
func canonical(value string) string {
	if printable(value) {
		return strings.ToLower(strings.TrimSpace(value))
	}
	fold := cases.Fold()
	for {
		next := strings.Map(visible, value)
		next = strings.TrimSpace(norm.NFKC.String(fold.String(norm.NFKC.String(next))))
		if next == value {
			return value
		}
		value = next
	}
}

// printable says whether a value is of printable ASCII alone.
func printable(value string) bool {
	for i := range len(value) {
		if value[i] < ' ' || value[i] > '~' {
			return false
		}
	}
	return true
}

// visible drops what is neither seen nor a blank.
func visible(r rune) rune {
	if unicode.IsSpace(r) || !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
		return r
	}
	return -1
}
