package identity

import (
	"errors"
	"fmt"
)

// Path tells clients apart by a part of the path: the value of a wildcard of
// the pattern that matched, such as {tenant} in /t/{tenant}/.
//
// What a client may forge: all of it. It says what is asked for, not who asks:
// it fits limits on a resource (each document, each tenant's page), and anyone
// can use up that budget.
//
// Where no pattern matched there is no identity; an empty value, such as that of
// {rest...} at its root, is a value. Paths of the same name and secret are equal (==).
type Path struct {
	name   string
	prefix string
	secret *Secret
}

// NewPath is a source by the wildcard's value, stored as a hash under the secret.
func NewPath(name string, secret *Secret) (Path, error) {
	if name == "" {
		return Path{}, errors.New("the wildcard's name is empty")
	}
	for _, c := range []byte(name) {
		if c == ':' || c == '{' || c == '}' || c == '.' || c == '/' || c <= ' ' {
			return Path{}, fmt.Errorf("%q is not a wildcard's name: write id for the wildcard {id}", name)
		}
	}
	if secret == nil {
		return Path{}, errors.New("a path's values are stored as hashes only: give it a secret")
	}
	return Path{name, "path:" + name + ":", secret}, nil
}

// Identity is "path:", the wildcard's name and the hash of its value.
func (p Path) Identity(r *Request) (string, bool) {
	if r.PathValues == nil {
		return "", false
	}
	return p.secret.identity(p.prefix, r.PathValues(p.name)), true
}

// For is the client of a value of the wildcard, as the path has it once decoded.
func (p Path) For(value string) (Who, error) {
	return Who{ID: p.secret.identity(p.prefix, value)}, nil
}

// Name is the wildcard's name.
func (p Path) Name() string { return p.name }

func (p Path) String() string { return "{path: " + p.name + "}" }
