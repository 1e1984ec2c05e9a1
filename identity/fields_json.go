package identity

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// inJSON looks for the field in a text that has to be JSON as RFC 8259 has it, in
// UTF-8: one value, with nothing behind it.
func (f *field) inJSON(text string, found *finding) error {
	if !utf8.ValidString(text) {
		return errUTF8
	}
	if !json.Valid([]byte(text)) {
		return errJSON
	}
	d := &jsonText{strings.TrimLeft(text, blanks)}
	return f.inObject(d, f.path, found)
}

// inObject looks for the field along the path in the value that comes next, and
// leaves it behind. What is no object has no fields. All of an object is read: a
// name may come again, and which of the two counts is for the reader to choose.
func (f *field) inObject(d *jsonText, path []string, found *finding) error {
	if d.rest[0] != '{' {
		d.skip()
		return nil
	}
	d.rest = d.rest[1:]
	through := false // an object on the path was seen
	for d.punctuation(); d.rest[0] != '}'; {
		key, err := d.text()
		if err != nil {
			return err
		}
		d.punctuation() // the colon
		switch key = fold(key); {
		// Some readers take user.name for a key before they walk objects.
		case key == strings.Join(path, "."):
			value, err := d.scalar()
			if err != nil {
				return err
			}
			if err := found.see(value); err != nil {
				return err
			}
		case key == path[0]:
			if through {
				return errTwice
			}
			through = true
			if err := f.inObject(d, path[1:], found); err != nil {
				return err
			}
		default:
			d.skip()
		}
		d.punctuation() // a comma
	}
	d.rest = d.rest[1:]
	return nil
}

const blanks = " \t\r\n"

// A jsonText is the rest of a text that is known to be valid JSON. It begins with
// a value, a key or the end of an object.
type jsonText struct{ rest string }

// punctuation passes over what parts keys and values.
func (d *jsonText) punctuation() { d.rest = strings.TrimLeft(d.rest, blanks+":,") }

// literal takes the text of a string, with its quotes.
func (d *jsonText) literal() string {
	end := 1
	for d.rest[end] != '"' {
		if d.rest[end] == '\\' {
			end++
		}
		end++
	}
	literal := d.rest[:end+1]
	d.rest = d.rest[end+1:]
	return literal
}

// text takes a string. Half of a surrogate pair is no text: readers put different
// ones in its place.
func (d *jsonText) text() (string, error) {
	literal := d.literal()
	if !strings.Contains(literal, `\`) {
		return literal[1 : len(literal)-1], nil
	}
	if halves(literal) {
		return "", errJSON
	}
	var text string
	err := json.Unmarshal([]byte(literal), &text)
	return text, err
}

// halves says whether a string has half of a surrogate pair.
func halves(literal string) bool {
	high := false // the last escape was a first half
	for {
		before, rest, escape := strings.Cut(literal, `\`)
		if high && (before != "" || !escape) {
			return true
		}
		if !escape {
			return false
		}
		unit := uint64(0)
		if rest[0] == 'u' {
			unit, _ = strconv.ParseUint(rest[1:5], 16, 16)
			rest = rest[4:]
		}
		low := 0xDC00 <= unit && unit < 0xE000
		if high != low {
			return true
		}
		high = 0xD800 <= unit && unit < 0xDC00
		literal = rest[1:]
	}
}

// scalar takes a value that stands for a text: a string, a whole number, or null,
// which is none. A number is its digits where all readers write it so.
func (d *jsonText) scalar() (string, error) {
	switch d.rest[0] {
	case '"':
		return d.text()
	case '{', '[':
		return "", errShape
	case 'n':
		d.skip()
		return "", nil
	}
	digits := d.word()
	if n, err := strconv.ParseInt(digits, 10, 64); err != nil || strconv.FormatInt(n, 10) != digits || n != int64(float64(n)) {
		return "", wrong("A field that has to be one text is a number that is not whole, a very large one, or no text at all.")
	}
	return digits, nil
}

// word takes a number, true, false or null.
func (d *jsonText) word() string {
	end := strings.IndexAny(d.rest, blanks+",]}")
	if end < 0 {
		end = len(d.rest)
	}
	word := d.rest[:end]
	d.rest = d.rest[end:]
	return word
}

// skip passes over a value.
func (d *jsonText) skip() {
	for depth := 0; ; {
		switch d.rest[0] {
		case '"':
			d.literal()
		case '{', '[':
			depth++
			d.rest = d.rest[1:]
		case '}', ']':
			depth--
			d.rest = d.rest[1:]
		case ' ', '\t', '\r', '\n', ':', ',':
			d.rest = d.rest[1:]
			continue
		default:
			d.word()
		}
		if depth == 0 {
			return
		}
	}
}
