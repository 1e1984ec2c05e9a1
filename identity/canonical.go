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
// as alice. They go first, as they keep letters from composing; what folding takes
// apart is composed again.
//
// What it costs grows with the length of the value, some letters of three bytes
// becoming 33 on the way, so one that no name has is refused.
func canonical(value string) (string, error) {
	switch {
	case printable(value):
		return strings.ToLower(strings.TrimSpace(value)), nil
	case len(value) > longestName:
		return "", wrong("A value that is looked for is too long.")
	}
	value = norm.NFKC.String(strings.Map(visible, value))
	value = norm.NFKC.String(strings.Map(cherokee, cases.Fold().String(value)))
	return strings.TrimSpace(value), nil
}

// longestName is the most bytes of a value that is not of ASCII alone.
const longestName = 1024

// cherokee takes small letters of Cherokee, which fold to its capitals and not as
// elsewhere, for those: x/text folds each to the other.
func cherokee(r rune) rune {
	if 0xAB70 <= r && r <= 0xABBF || 0x13F8 <= r && r <= 0x13FD {
		return unicode.ToUpper(r)
	}
	return r
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
