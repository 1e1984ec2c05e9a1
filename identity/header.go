package identity

import (
	"errors"
	"fmt"
	"net/textproto"
	"strings"
)

// Header tells clients apart by the value of a request header, such as an API
// key or a tenant.
//
// What a client may forge: all of it. A client that makes up values has a fresh
// budget with each, unless something before us sets the header or something
// behind us refuses values that it does not know. Limit by address beside it.
//
// A request without the header, or with nothing but blanks in it, shows no
// identity. Lines of the same value count as one. Lines of different values,
// of which nobody knows which one is read behind us, are no value at all: all
// such requests, whoever sends them, are one client, so that a second line buys
// no fresh budget. Values are compared byte for byte, blanks around them aside.
//
// Headers of the same name and secret are equal (==).
type Header struct {
	name   string // canonical
	prefix string
	secret *Secret
}

// NewHeader is a source by the header's value, stored as a hash under the secret.
func NewHeader(name string, secret *Secret) (Header, error) {
	name, err := headerName(name)
	if err != nil {
		return Header{}, err
	}
	if name == "Host" {
		return Header{}, errors.New("the Host header is not one to tell clients apart by: match the host in a pattern, as in example.com/")
	}
	if secret == nil {
		return Header{}, errors.New("a header's values are stored as hashes only: give it a secret")
	}
	return Header{name, "header:" + strings.ToLower(name) + ":", secret}, nil
}

// headerName is the canonical name, or an error when it is none.
func headerName(name string) (string, error) {
	if name == "" {
		return "", errors.New("the header's name is empty")
	}
	if !isToken(name) {
		return "", fmt.Errorf("%q is not a header's name: letters, digits and hyphens, as X-API-Key", name)
	}
	return textproto.CanonicalMIMEHeaderKey(name), nil
}

// Identity is "header:", the name and the hash of the value.
func (h Header) Identity(r *Request) (string, bool) {
	value := ""
	for _, line := range r.Header[h.name] {
		line = strings.Trim(line, " \t")
		switch {
		case line == "" || line == value:
		case value == "":
			value = line
		default:
			return h.prefix + "several", true // not a hash, which is 22 characters
		}
	}
	if value == "" {
		return "", false
	}
	return h.secret.identity(h.prefix, value), true
}

// For is the client that sends the value.
func (h Header) For(value string) (Who, error) {
	value, err := headerValue(value)
	if err != nil {
		return Who{}, err
	}
	return Who{ID: h.secret.identity(h.prefix, value)}, nil
}

// headerValue is a value as a header has it: without blanks around it.
func headerValue(value string) (string, error) {
	value = strings.Trim(value, " \t")
	if value == "" || !isFieldText(value) {
		return "", errors.New("a header's value is a text that is not empty, without line ends and other controls")
	}
	return value, nil
}

// Name is the header's canonical name.
func (h Header) Name() string { return h.name }

func (h Header) String() string { return "{header: " + h.name + "}" }
