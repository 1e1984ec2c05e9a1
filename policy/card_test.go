package policy_test

import (
	"context"
	"strings"

	"github.com/comporta/comporta/identity"
)

// A card is a source for tests: it proves who is named in a header, as
// "alice" or "alice of pro", and counts what that cost. "forged" proves nothing.
type card struct {
	kind   string
	stage  identity.Stage
	proofs int
	err    error // of every proof
}

func (c *card) Identity(r *identity.Request) (string, bool) {
	who, shown, err := c.Prove(context.Background(), r)
	return who.ID, shown && err == nil
}

func (c *card) Stage(r *identity.Request) identity.Stage {
	if len(r.Header[c.header()]) == 0 {
		return identity.Look
	}
	return c.stage
}

func (c *card) Prove(_ context.Context, r *identity.Request) (identity.Who, bool, error) {
	lines := r.Header[c.header()]
	if len(lines) == 0 {
		return identity.Who{}, false, nil
	}
	c.proofs++
	if lines[0] == "forged" {
		return identity.Who{}, false, identity.ErrUnproved
	}
	who, err := c.For(lines[0])
	return who, err == nil && c.err == nil, c.err
}

func (c *card) For(value string) (identity.Who, error) {
	name, plan, _ := strings.Cut(value, " of ")
	return identity.Who{ID: c.kind + ":" + name, Plan: plan, Name: c.kind + ":" + name}, nil
}

func (c *card) TellsPlans() bool { return c.stage > identity.Look }
func (c *card) header() string   { return "X-" + strings.ToUpper(c.kind[:1]) + c.kind[1:] }
func (c *card) String() string   { return c.kind }
