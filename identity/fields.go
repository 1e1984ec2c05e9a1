package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A field is a name by which values are looked for in bodies.
type field struct {
	name string   // as it was given
	path []string // the names of objects in JSON and of the value in the last, folded
	flat string   // the same as one key of a form or of JSON, folded, with _ for each dot
}

// newField checks the name.
func newField(name string) (field, error) {
	f := field{name: name, flat: strings.ReplaceAll(fold(name), ".", "_")}
	for part := range strings.SplitSeq(name, ".") {
		if part == "" {
			return field{}, fmt.Errorf("%q is not a field's name: write username, or user.name for the field of an object", name)
		}
		f.path = append(f.path, fold(part))
	}
	for _, c := range name {
		switch {
		case c == '[' || c == ']':
			return field{}, fmt.Errorf("%q is not a field's name: write user.name for user[name]", name)
		case !unicode.IsLetter(c) && !unicode.IsMark(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-.$@", c) || c == utf8.RuneError:
			return field{}, fmt.Errorf("%q is not a field's name: it has letters, digits and any of _ - . $ @", name)
		}
	}
	return f, nil
}

// fold makes keys equal that some reader takes for the same one: many do not look
// at case, by Unicode's simple folding (ſ is s), and some take ı and İ for i.
func fold(key string) string {
	return strings.Map(func(r rune) rune {
		if r == 'ı' || r == 'İ' {
			return 'I'
		}
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next // the least of those that are the same
			}
			r = next
		}
	}, key)
}

// A finding is what was seen of a field so far.
type finding struct {
	seen  bool
	value string // "" where there is none, as with null
}

// see notes the field with its value, once.
func (f *finding) see(value string) error {
	switch {
	case f.seen:
		return errTwice
	case strings.ContainsRune(value, 0):
		return wrong("A value that is looked for has a NUL in it.")
	}
	f.seen, f.value = true, value
	return nil
}

// wrong is the error of a request that is refused for its form.
func wrong(detail string) error { return &RequestError{http.StatusBadRequest, detail} }

var (
	errTwice = wrong("A field that may be there once is there twice.")
	errShape = wrong("A field that has to be one text is a list or an object.")
	errUTF8  = wrong("What was sent is not in UTF-8.")
	errTold  = wrong("The form names another charset than UTF-8.")
	errForm  = wrong("The form or the query string is malformed.")
	errParts = wrong("The multipart form is malformed.")
	errJSON  = wrong("The body is not valid JSON.")
	errType  = wrong("The content type is malformed, or one that may be read in more than one way.")
)

// find is the field's value; "" where the request has none.
func (c *Claimed) find(ctx context.Context, r *Request) (string, error) {
	var found finding
	if err := c.field.inQuery(r.Query, &found); err != nil {
		return "", err
	}
	if r.Body == nil {
		return found.value, nil
	}
	kind, boundary, err := bodyKind(r.Header["Content-Type"])
	switch {
	case err != nil:
		return "", err
	case kind == unread && !found.seen:
		return "", nil
	}
	body, whole, err := r.Body(ctx, c.maxBody)
	switch {
	case err != nil:
		if refused, ok := errors.AsType[*RequestError](err); ok {
			return "", refused
		}
		// It must not pass for a request without the field: the rest of it could still
		// be handed on.
		return "", wrong("The body could not be read.")
	case len(body) == 0 && whole:
		return found.value, nil
	case kind == unread:
		return "", wrong("A field of the body is in the query string, and the body is of a type that is not read.")
	case kind == untyped:
		return "", wrong("The body has no content type.")
	case !whole:
		return "", &RequestError{http.StatusRequestEntityTooLarge, fmt.Sprintf("The body is longer than %d bytes.", c.maxBody)}
	case encoded(r.Header["Content-Encoding"]):
		return "", wrong("The body is compressed.")
	case bytes.HasPrefix(body, []byte("\ufeff")): // some readers skip it
		return "", wrong("The body begins with a byte order mark.")
	}
	switch text := string(body); kind {
	case asParts:
		err = c.field.inParts(text, boundary, &found)
	case asJSON:
		err = c.field.inJSON(text, &found)
	default:
		err = c.field.inForm(text, &found)
	}
	return found.value, err
}

// encoded says whether a body is compressed.
func encoded(lines []string) bool {
	for _, line := range lines {
		for coding := range strings.SplitSeq(line, ",") {
			if coding = strings.Trim(coding, " \t"); coding != "" && !strings.EqualFold(coding, "identity") {
				return true
			}
		}
	}
	return false
}
