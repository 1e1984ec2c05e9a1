package identity

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// inParts looks for the field in a multipart form (RFC 7578). It takes only what
// all readers take apart in the same way: lines that end with CR LF, nothing before
// the first part or behind the last, and the boundary nowhere else.
func (f *field) inParts(text, boundary string, found *finding) error {
	line := "\r\n--" + boundary
	delimiter := line[2:]
	text, begun := strings.CutPrefix(text, delimiter)
	for begun {
		if end, closed := strings.CutPrefix(text, "--"); closed && (end == "" || end == "\r\n") {
			return nil
		}
		part, rest, ended := strings.Cut(text, line)
		part, opened := strings.CutPrefix(part, "\r\n")
		if !ended || !opened || strings.Contains(part, delimiter) {
			break
		}
		if err := f.inPart(part, found); err != nil {
			return err
		}
		text = rest
	}
	return errParts
}

// inPart looks at one part: its header lines, an empty one, and the value.
func (f *field) inPart(part string, found *finding) error {
	head, value, ok := strings.Cut(part, "\r\n\r\n")
	if !ok || strings.Count(head, "\n") != strings.Count(head, "\r\n") || strings.Count(head, "\r") != strings.Count(head, "\r\n") {
		return errParts
	}
	var said partHead
	for line := range strings.SplitSeq(head, "\r\n") {
		if !said.read(line) {
			return errParts
		}
	}
	if !said.disposed || !utf8.ValidString(said.name) {
		return errParts
	}
	is, within := f.isKey(said.name)
	// Few readers decode a name, and no writer encodes letters.
	if decoded, err := url.PathUnescape(said.name); err == nil && decoded != said.name {
		if is, within := f.isKey(decoded); is || within {
			return errParts
		}
	}
	switch {
	case tellsCharset(said.name, value):
		return errTold
	case within:
		return errShape
	case !is:
		return nil
	case said.file || said.foreign:
		return wrong("A field that has to be one text is a file, or in another charset.")
	case !utf8.ValidString(value):
		return errUTF8
	}
	return found.see(value)
}

// A partHead is what the header lines of a part say.
type partHead struct {
	name     string
	disposed bool // there was a Content-Disposition
	typed    bool // there was a Content-Type
	file     bool // the part is a file
	foreign  bool // its type has parameters that are not that of UTF-8
}

// read reports false for a line that some readers read otherwise than others.
func (p *partHead) read(line string) bool {
	name, value, is := strings.Cut(line, ":")
	if !is || !isToken(name) || !isFieldText(value) {
		return false
	}
	value = strings.Trim(value, " \t")
	first, parameters, _ := strings.Cut(value, ";")
	first = strings.ToLower(strings.Trim(first, " \t"))
	switch strings.ToLower(name) {
	case "content-disposition":
		again := p.disposed
		p.disposed = true
		named := false
		return !again && first == "form-data" && eachParameter(parameters, func(name, value string) bool {
			switch name {
			case "name":
				again := named
				p.name, named = value, true
				return !again && !strings.Contains(value, `\`) && !mentions(value, "name=")
			case "filename", "filename*":
				p.file = true
				return !mentions(value, "name=")
			}
			return false
		}) && named
	case "content-type":
		again := p.typed
		p.typed = true
		if _, ok := typeParameters(parameters, false); !ok {
			p.foreign = true
		}
		return !again && !strings.HasPrefix(first, "multipart/")
	case "content-transfer-encoding":
		return first == "7bit" || first == "8bit" || first == "binary" // some decode the others
	}
	return !mentions(value, "content-disposition") // which some find anywhere
}

// mentions says whether a text has a word, which is in small letters, in it.
func mentions(text, word string) bool { return strings.Contains(strings.ToLower(text), word) }
