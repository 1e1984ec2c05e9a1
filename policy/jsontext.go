package policy

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A keyMatch compares a JSON string that comes byte by byte with a text, and keeps
// none of it.
type keyMatch struct {
	want string // what is left of it
	off  bool   // it is another

	escape  escape
	code    uint16 // of \uXXXX, as far as it was read
	leading uint16 // a surrogate that waits for its second half; 0 where none does
}

type escape uint8

const (
	noEscape escape = iota
	behindBackslash
	hex1 // of \uXXXX, the first digit comes
	hex2
	hex3
	hex4
)

// same says, at the end, whether it was the text.
func (k *keyMatch) same() bool { return !k.off && k.want == "" }

// next reads a byte behind the opening quote, and says whether it is the closing
// one; ok is false where the string is none.
func (k *keyMatch) next(c byte) (end, ok bool) {
	switch k.escape {
	case noEscape:
		switch c {
		case '"':
			k.flush()
			return true, true
		case '\\':
			k.escape = behindBackslash
		default:
			k.flush()
			k.byte(c)
		}
	case behindBackslash:
		if k.escape = noEscape; c == 'u' {
			k.escape, k.code = hex1, 0
			return false, true
		}
		at := bytes.IndexByte([]byte(`"\/bfnrt`), c)
		if at < 0 {
			return false, false
		}
		k.flush()
		k.byte("\"\\/\b\f\n\r\t"[at])
	default:
		digit, err := strconv.ParseUint(string(rune(c)), 16, 4)
		if err != nil {
			return false, false
		}
		k.code = k.code<<4 | uint16(digit)
		if k.escape++; k.escape > hex4 {
			k.escape = noEscape
			k.unit(k.code)
		}
	}
	return false, true
}

// unit is a code unit of UTF-16, of which some characters take two.
func (k *keyMatch) unit(u uint16) {
	if k.leading != 0 {
		if r := utf16.DecodeRune(rune(k.leading), rune(u)); r != utf8.RuneError {
			k.leading = 0
			k.rune(r)
			return
		}
	}
	k.flush()
	if 0xd800 <= u && u < 0xdc00 {
		k.leading = u
		return
	}
	k.rune(rune(u)) // the second half alone is U+FFFD
}

// flush gives up waiting for a second half.
func (k *keyMatch) flush() {
	if k.leading != 0 {
		k.leading = 0
		k.rune(utf8.RuneError)
	}
}

func (k *keyMatch) rune(r rune) {
	var room [utf8.UTFMax]byte
	for _, c := range utf8.AppendRune(room[:0], r) {
		k.byte(c)
	}
}

func (k *keyMatch) byte(c byte) {
	if k.off || k.want == "" || k.want[0] != c {
		k.off = true
		return
	}
	k.want = k.want[1:]
}

// wholeUnits is a JSON number rounded up; false where the text is none, or the
// number is negative or does not fit.
func wholeUnits(text []byte) (int64, bool) {
	text, negative := bytes.CutPrefix(text, []byte("-"))
	mantissa, exponent := text, 0
	if at := bytes.IndexAny(text, "eE"); at >= 0 {
		var err error
		if exponent, err = strconv.Atoi(string(text[at+1:])); err != nil || exponent < -1000 || exponent > 1000 {
			return 0, false
		}
		mantissa = text[:at]
	}
	whole, fraction, dotted := bytes.Cut(mantissa, []byte("."))
	if !digits(whole) || len(whole) > 1 && whole[0] == '0' || dotted && !digits(fraction) {
		return 0, false
	}
	point := len(whole) + exponent // where it stands among all the digits
	n, rest := int64(0), false
	for i := range max(point, len(whole)+len(fraction)) {
		d := byte('0')
		switch {
		case i < len(whole):
			d = whole[i]
		case i < len(whole)+len(fraction):
			d = fraction[i-len(whole)]
		}
		if i >= point {
			rest = rest || d != '0'
			continue
		}
		if n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = n*10 + int64(d-'0')
	}
	if rest {
		n++
	}
	return n, !negative || n == 0
}

func digits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}
