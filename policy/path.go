package policy

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"
)

// ErrPath is what the errors of [Paths.Clean] are: the request is to be refused
// with 400. They never repeat the path.
var ErrPath = errors.New("the path could be read in more than one way")

// pathError is an ErrPath with its reason.
type pathError string

func (e pathError) Error() string        { return string(e) }
func (e pathError) Is(target error) bool { return target == ErrPath }

const (
	errRelative  pathError = "the path does not begin with a slash"
	errEncoding  pathError = "the path has a percent sign without two hexadecimal digits"
	errSlash     pathError = "the path has an encoded slash"
	errBackslash pathError = "the path has a backslash"
	errSemicolon pathError = "the path has a parameter (;)"
	errControl   pathError = "the path has a control character"
	errUTF8      pathError = "the path is not UTF-8"
)

// Clean reads the escaped path of a request, without query, as RFC 3986,
// section 6, has it: it decodes what need not be encoded, writes the other
// escapes in capitals, takes runs of slashes as one and resolves . and .. in
// that order. It gives the escaped path to forward and the same path decoded,
// which patterns match; so what was matched is what is forwarded.
//
// An upstream might read some paths otherwise, and then a limit would watch one
// door while the client goes in by another. They are an [ErrPath]: an encoded
// slash, a backslash or a semicolon in either form, a bad escape, control
// characters, bytes that are not UTF-8. With Loose they pass: each stays one
// character of its segment, escaped where it has to be; an encoded slash stays
// %2F in the decoded path too. (So where the decoded path goes into a URL beside
// the escaped one, as net/url wants it, take url.PathUnescape of the latter.)
//
// An empty path is /; the * of OPTIONS * is itself. What Clean gives is clean: it
// comes through again unchanged. The cost is linear, and nothing is allocated
// for a path that is clean and needs no escapes.
func (p Paths) Clean(escaped string) (forward, decoded string, err error) {
	return clean(escaped, p.Loose, p.Loose)
}

func clean(escaped string, loose, semicolons bool) (forward, decoded string, err error) {
	switch {
	case escaped == "":
		return "/", "/", nil
	case escaped == "*" || IsPlain(escaped):
		return escaped, escaped, nil
	case escaped[0] != '/':
		return "", "", errRelative
	}
	c := cleaner{
		loose: loose, semicolons: semicolons,
		forward: make([]byte, 0, len(escaped)+8), decoded: make([]byte, 0, len(escaped)),
	}
	for rest, more := escaped[1:], true; more; {
		var piece string
		piece, rest, more = strings.Cut(rest, "/")
		if err := c.segment(piece, !more); err != nil {
			return "", "", err
		}
	}
	if !loose && !utf8.Valid(c.decoded) {
		return "", "", errUTF8
	}
	return string(c.forward), string(c.decoded), nil
}

// IsPlain says whether a path is clean and the same in both forms, escaped and
// decoded: slashes and characters that are written as they are, no empty segment,
// no dot segment. Such a path need not be cleaned, whatever the policy.
func IsPlain(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	start := 1 // of the segment
	for i := 1; i < len(path); i++ {
		if c := path[i]; c != '/' {
			if asIs[c] {
				continue
			}
			return false
		}
		if i == start || isDots(path[start:i]) {
			return false
		}
		start = i + 1
	}
	return !isDots(path[start:])
}

func isDots(piece string) bool { return piece == "." || piece == ".." }

// asIs are the characters that a segment has unescaped: pchar of RFC 3986 but for
// the semicolon, which is looked at.
var asIs = func() (set [256]bool) {
	for _, c := range []byte(unreserved + "!$&'()*+,=:@") {
		set[c] = true
	}
	return set
}()

const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

// A cleaner writes both forms of a path, segment by segment. Between segments
// each is empty or begins with a slash; a segment has no slash in either form,
// so that the last slash of each is where the last segment began.
type cleaner struct {
	loose, semicolons bool
	forward, decoded  []byte
}

func (c *cleaner) segment(piece string, last bool) error {
	if piece == "" && !last {
		return nil
	}
	forward, decoded := len(c.forward), len(c.decoded)
	c.forward, c.decoded = append(c.forward, '/'), append(c.decoded, '/')
	for i := 0; i < len(piece); i++ {
		b, encoded := piece[i], false
		if b == '%' {
			v, ok := unhex(piece[i+1:])
			if !ok && !c.loose {
				return errEncoding
			}
			if ok {
				b, encoded = v, true
				i += 2
			}
		}
		if err := c.check(b); err != nil {
			return err
		}
		c.put(b, encoded)
	}
	switch string(c.decoded[decoded+1:]) {
	case "..":
		forward, decoded = up(c.forward[:forward]), up(c.decoded[:decoded])
		fallthrough
	case ".":
		c.forward, c.decoded = c.forward[:forward], c.decoded[:decoded]
		if last { // what a dot segment names is a directory
			c.forward, c.decoded = append(c.forward, '/'), append(c.decoded, '/')
		}
	}
	return nil
}

// up is the length without the last segment.
func up(path []byte) int { return max(0, bytes.LastIndexByte(path, '/')) }

// check is the error of a character that is not let through.
func (c *cleaner) check(b byte) error {
	if b == ';' && !c.semicolons {
		return errSemicolon
	}
	if c.loose {
		return nil
	}
	switch {
	case b == '/':
		return errSlash // encoded: the others are cut at
	case b == '\\':
		return errBackslash
	case b < ' ' || b == 0x7f:
		return errControl
	}
	return nil
}

// put writes one character that stood in the path as it is or encoded: encoded
// again where it was and is not unreserved, and where it has to be.
func (c *cleaner) put(b byte, encoded bool) {
	const digits = "0123456789ABCDEF"
	if asIs[b] && (!encoded || strings.IndexByte(unreserved, b) >= 0) || b == ';' && !encoded {
		c.forward, c.decoded = append(c.forward, b), append(c.decoded, b)
		return
	}
	c.forward = append(c.forward, '%', digits[b>>4], digits[b&15])
	if b == '/' {
		c.decoded = append(c.decoded, "%2F"...)
		return
	}
	c.decoded = append(c.decoded, b)
}

// unhex reads the two hexadecimal digits that s begins with.
func unhex(s string) (byte, bool) {
	if len(s) < 2 {
		return 0, false
	}
	high, ok := digit(s[0])
	low, also := digit(s[1])
	return high<<4 | low, ok && also
}

func digit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
