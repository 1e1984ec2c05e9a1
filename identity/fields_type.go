package identity

import "strings"

// A kind of body is how fields are found in it.
type kind uint8

const (
	untyped kind = iota // nothing says what it is
	unread              // it is of another type than those below
	asForm              // application/x-www-form-urlencoded
	asParts             // multipart/form-data
	asJSON              // application/json and its like
)

// bodyKind reads the lines of Content-Type: the kind of body, and the boundary of a
// multipart one.
//
// It is strict, since readers are not. Some look for a word anywhere in the line:
// form; x=/json is JSON to them. Some read all of multipart as a form. Several lines
// are joined by some, others take the first or the last.
func bodyKind(lines []string) (k kind, boundary string, err error) {
	if len(lines) > 1 {
		return untyped, "", errType
	}
	if len(lines) == 0 || strings.Trim(lines[0], " \t") == "" {
		return untyped, "", nil
	}
	media, parameters, _ := strings.Cut(lines[0], ";")
	media = strings.ToLower(strings.Trim(media, " \t"))
	major, minor, _ := strings.Cut(media, "/")
	if !isToken(major) || !isToken(minor) {
		return untyped, "", errType
	}
	rest := parameters
	switch {
	case media == "application/x-www-form-urlencoded":
		k = asForm
	case media == "multipart/form-data":
		k = asParts
	case minor == "json" || minor == "x-json" || strings.HasSuffix(minor, "+json"):
		k = asJSON
	case major == "multipart":
		return untyped, "", errType
	default:
		k, rest = unread, media+";"+rest
	}
	for _, word := range []string{"/json", "+json", "form-data", "urlencoded"} {
		if mentions(rest, word) {
			return untyped, "", errType
		}
	}
	if k == unread {
		return k, "", nil
	}
	boundary, ok := typeParameters(parameters, k == asParts)
	if !ok {
		return untyped, "", errType
	}
	return k, boundary, nil
}

// typeParameters reads the parameters of a content type. They name no charset but
// UTF-8, and those of a multipart form, which some readers find by looking for the
// word, nothing but that and its boundary.
func typeParameters(text string, parts bool) (boundary string, ok bool) {
	charset := ""
	ok = eachParameter(text, func(name, value string) bool {
		switch {
		case name == "charset":
			again := charset != ""
			charset = value
			return !again && isUTF8(charset)
		case !parts:
			return !strings.Contains(name, "*")
		}
		again := boundary != ""
		boundary = value
		return !again && name == "boundary" && isBoundary(value)
	})
	return boundary, ok && (boundary != "") == parts
}

// isUTF8 says whether a charset's name is that of UTF-8.
func isUTF8(charset string) bool {
	return strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// eachParameter visits the parameters that follow a value in a header, and reports
// whether all are well-formed and welcome. Names are in small letters. Quotes within
// quotes, which some readers take for the end, are not well-formed, nor is nothing
// between two semicolons.
func eachParameter(text string, visit func(name, value string) bool) bool {
	for {
		text = strings.TrimLeft(text, " \t")
		if text == "" {
			return true
		}
		name, rest, _ := strings.Cut(text, "=")
		var value string
		if quoted, is := strings.CutPrefix(rest, `"`); is {
			var closed bool
			if value, text, closed = strings.Cut(quoted, `"`); !closed || strings.HasSuffix(value, `\`) {
				return false
			}
		} else {
			end := strings.IndexAny(rest, "; \t")
			if end < 0 {
				end = len(rest)
			}
			if value, text = rest[:end], rest[end:]; !isToken(value) {
				return false
			}
		}
		text = strings.TrimLeft(text, " \t")
		var more bool
		text, more = strings.CutPrefix(text, ";")
		if text != "" && !more || !isToken(name) || !visit(strings.ToLower(name), value) {
			return false
		}
	}
}

// isBoundary says whether all readers take a boundary for the same: a comma ends it
// for some.
func isBoundary(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isLetter(c) && !strings.ContainsRune("'()+_-./:=?", rune(c)) {
			return false
		}
	}
	return 1 <= len(text) && len(text) <= 70
}

// isToken says whether a text is a token of HTTP (RFC 9110, 5.6.2).
func isToken(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isLetter(c) && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return text != ""
}

// isFieldText says whether a header's value may be one (RFC 9110, 5.5): no control
// characters but tabs.
func isFieldText(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// isLetter says whether a byte is a letter or a digit of ASCII.
func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
