package identity

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// inForm looks for the field in a form.
//
// One that begins like JSON is refused. Many programs decode JSON without a look at
// the content type, and {"username":"alice","x":"&username=bob"} is both.
func (f *field) inForm(text string, found *finding) error {
	if start := strings.TrimSpace(text); start != "" && (start[0] == '{' || start[0] == '[') {
		return errForm
	}
	return f.inPairs(text, true, found)
}

// inQuery looks for the field in a query string, of which what belongs to other
// fields is nobody's business here.
func (f *field) inQuery(text string, found *finding) error { return f.inPairs(text, false, found) }

// inPairs looks at pairs of key and value, each with percent signs decoded and +
// for a blank. All of them have to be well-formed, or the keys and the field alone.
//
// A semicolon parts pairs for some readers and not for others. That is harmless, as
// in a password, unless they would then read another value of the field.
func (f *field) inPairs(text string, all bool, found *finding) error {
	for pair := range strings.SplitSeq(text, "&") {
		if pair == "" {
			continue
		}
		_, _, several := strings.Cut(pair, ";")
		for piece := range strings.SplitSeq(pair, ";") {
			key, value, _ := strings.Cut(piece, "=")
			key, err := url.QueryUnescape(key)
			if err != nil {
				return errForm
			}
			is, within := f.isKey(key)
			if !is && !within && !all {
				continue
			}
			value, err = url.QueryUnescape(value)
			switch {
			case err != nil || is && several:
				return errForm
			case !utf8.ValidString(key) || !utf8.ValidString(value):
				return errUTF8
			case all && tellsCharset(key, value):
				return errTold
			case within:
				return errShape
			case is:
				if err := found.see(value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// tellsCharset says whether a field of a form has some readers take the others for
// another charset than UTF-8 (RFC 7578, section 4.6).
func tellsCharset(key, value string) bool {
	if !strings.EqualFold(key, "_charset_") {
		return false
	}
	value = strings.TrimSpace(value)
	return value != "" && !isUTF8(value)
}

// isKey says whether a key of a form is the field to some reader, or a part of it,
// as username[] or username[first] are. Readers differ in many ways:
//
//   - ASP.NET and Go's JSON do not look at case.
//   - PHP skips blanks before a key, ends it at a NUL and takes dots and blanks in it
//     for underscores; in multipart forms it also takes 'username' for quoted.
//   - Rack drops brackets before a key, old versions also those behind it. It splits
//     pairs at semicolons with the blanks behind them.
//   - PHP, Rack and qs read user[name] as an object's field, Spring and ASP.NET user.name.
//   - Spring takes the value of !username where there is no username.
func (f *field) isKey(key string) (is, within bool) {
	if len(key) < len(f.flat) { // folding makes nothing longer
		return false, false
	}
	key, _, _ = strings.Cut(key, "\x00")
	key = fold(strings.TrimLeftFunc(key, func(r rune) bool { return isDecoration(r) || r == '[' || r == '!' }))
	at := 0 // of the next byte in flat
	for at < len(f.flat) {
		if key == "" {
			return false, false
		}
		c := key[0]
		key = key[1:]
		switch c {
		case ']':
			continue
		case '.', ' ', '[':
			c = '_'
		}
		if c != f.flat[at] {
			return false, false
		}
		at++
	}
	key = strings.TrimFunc(key, isDecoration)
	return key == "", strings.HasPrefix(key, "[")
}

// isDecoration is what may stand around a key and mean nothing.
func isDecoration(r rune) bool { return unicode.IsSpace(r) || r == ']' || r == '\'' || r == '"' }
