package identity

import "context"

// Claimed tells clients apart by a field of the body, such as the name in a login.
type Claimed struct {
	field string
}

// Identity is part of Source.
func (c *Claimed) Identity(r *Request) (string, bool) {
	who, shown, err := c.Prove(context.Background(), r)
	return who.ID, shown && err == nil
}

// Stage is part of Prover.
func (c *Claimed) Stage(r *Request) Stage { return Body }

// Prove is part of Prover.
func (c *Claimed) Prove(ctx context.Context, r *Request) (Who, bool, error) { return Who{}, false, nil }

func (c *Claimed) String() string { return "{claimed: " + c.field + "}" }
