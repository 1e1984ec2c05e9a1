package identity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxBody is how much of a body a Claimed reads unless said.
const MaxBody = 64 << 10

// ClaimedOptions say how a claim is read.
type ClaimedOptions struct {
	// MaxBody is how long a body may be, in bytes; MaxBody unless said. A longer one
	// is refused.
	MaxBody int
	// Exact takes the value byte for byte; see Claimed for what is done otherwise.
	Exact bool
}

// Claimed tells clients apart by a field of the request's body, such as the name
// in a login. It is a Prover and a Named.
//
// What a client may forge: all of it. Nobody has proved anything yet, and anyone
// can name anyone: who is limited by this alone can be locked out by others. Join
// it with the address.
//
// The field is found in forms (application/x-www-form-urlencoded and
// multipart/form-data) and in JSON (application/json, text/json and all that end
// with +json) alike. A dot in its name walks objects: user.name is the field name
// of the object user in JSON, and user[name] or user.name in forms. A field that
// the query string has and the body does not have is taken from there: many
// frameworks do so.
//
// What must not be is that whoever reads the body behind us finds another value
// than we did. So what two readers may read differently is refused with a
// [RequestError], 400: a body that is malformed, compressed, in another charset
// than UTF-8 or without a content type; a field that is there twice, in other
// letters (Username), or as a list or object; and more, as the code says, that no
// honest client sends. 413 is a body over the bound. A request without the field,
// one with an empty value and one with another type of body show no identity:
// where what is behind us reads other types, let a limit refuse those.
//
// A value that is a number is its digits; a fraction, an exponent or more than
// 2^53 is refused, since readers differ on which text that is. Values that are
// spelled alike are one client: blanks at the ends and invisible characters go, the
// rest is taken in Unicode's form NFKC, case folded. Databases compare names in
// this way, or so that even more of them are the same: one that does not tell é
// from e lets a client have a budget for each spelling.
type Claimed struct {
	field   field
	prefix  string
	secret  *Secret
	maxBody int
	exact   bool
}

// NewClaimed is a source by a field's value, stored as a hash under the secret.
func NewClaimed(name string, secret *Secret, o ClaimedOptions) (*Claimed, error) {
	field, err := newField(name)
	switch {
	case err != nil:
		return nil, err
	case secret == nil:
		return nil, errors.New("a field's values are stored as hashes only: give it a secret")
	case o.MaxBody < 0:
		return nil, fmt.Errorf("a bound of %d bytes for bodies: at least 1, %d unless there is a reason", o.MaxBody, MaxBody)
	case o.MaxBody == 0:
		o.MaxBody = MaxBody
	}
	return &Claimed{field, "claimed:" + name + ":", secret, o.MaxBody, o.Exact}, nil
}

// Identity is "claimed:", the field's name and the hash of its value.
func (c *Claimed) Identity(r *Request) (string, bool) {
	who, shown, err := c.Prove(context.Background(), r)
	return who.ID, shown && err == nil
}

// Stage is Body for a request that has one.
func (c *Claimed) Stage(r *Request) Stage {
	if r.Body == nil {
		return Look
	}
	return Body
}

// Prove is who the request claims to be from. It costs time and memory in the
// length of the body; the name of the Who is its ID, since what was claimed is
// shown to nobody.
func (c *Claimed) Prove(ctx context.Context, r *Request) (Who, bool, error) {
	value, err := c.find(ctx, r)
	if err != nil {
		return Who{}, false, err
	}
	return c.who(value)
}

func (c *Claimed) who(value string) (who Who, shown bool, err error) {
	if !c.exact {
		value, err = canonical(value)
	}
	if err != nil || strings.TrimSpace(value) == "" {
		return Who{}, false, err
	}
	return Who{ID: c.secret.identity(c.prefix, value)}, true, nil
}

// For is the client that claims the value.
func (c *Claimed) For(value string) (Who, error) {
	who, shown, err := c.who(value)
	if err != nil || !shown || !utf8.ValidString(value) {
		return Who{}, fmt.Errorf("a value of the field %s is a text in UTF-8 that is more than blanks", c.field.name)
	}
	return who, nil
}

// Field is the field's name.
func (c *Claimed) Field() string { return c.field.name }

func (c *Claimed) String() string {
	if c.exact {
		return "{claimed: " + c.field.name + ", exact: true}"
	}
	return "{claimed: " + c.field.name + "}"
}
