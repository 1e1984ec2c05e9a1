package policy

import (
	"context"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
)

// An Engine enforces a policy on a store. It is safe for concurrent use.
type Engine struct {
	policy *Policy
	store  comporta.Store
}

// NewEngine checks and compiles a policy.
func NewEngine(p *Policy, store comporta.Store) (*Engine, error) { return &Engine{p, store}, nil }

// Policy is what the engine enforces; it is not to be changed.
func (e *Engine) Policy() *Policy { return e.policy }

// Check asks all the limits that a request is under, all or nothing, and fills in the verdict.
func (e *Engine) Check(ctx context.Context, r *identity.Request, v *Verdict) {}
