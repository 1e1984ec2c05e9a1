package identity

import "context"

// Value is the value as it was found in the request, and whether there is one.
func (c *Claimed) Value(r *Request) (value string, shown bool, err error) {
	value, err = c.find(context.Background(), r)
	return value, err == nil && value != "", err
}

// Canonical is the one spelling of a claimed value.
func Canonical(value string) (string, error) { return canonical(value) }
