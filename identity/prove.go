package identity

import (
	"context"
	"errors"
	"fmt"
)

// A Stage is how dear it is to know an identity. What is cheap is looked at
// before anything dear is done for a request.
type Stage uint8

const (
	// Look reads what is at hand: the address, a header, a table in memory.
	Look Stage = iota
	// Credential verifies a signature or asks somebody else.
	Credential
	// Body reads the request's body.
	Body
)

// Who is a client as a [Prover] knows it.
type Who struct {
	// ID is the identity as it is counted and stored, as Source.Identity has it.
	ID string
	// Plan is the plan that came with the proof; "" where none did.
	Plan string
	// Name is what operators call the client, such as user:alice; "" is ID. It is
	// never stored and never a secret.
	Name string
}

// A Prover is a Source that has more to say than an identity, or a price, or
// that can fail. [Source.Identity] is then Prove without a deadline, whose errors
// show nothing.
type Prover interface {
	Source
	// Stage is how dear Prove would be for this request: Look where the request
	// shows nothing to prove or the answer is known. It only looks.
	Stage(r *Request) Stage
	// Prove is who is asking and whether the request shows it. An error that is
	// ErrUnproved goes with shown false: a credential was shown and is not valid. A
	// *RequestError refuses the request.
	Prove(ctx context.Context, r *Request) (who Who, shown bool, err error)
}

// A Planner is a source of which clients' plans come with what proves them: who
// is only named has none.
type Planner interface {
	Source
	TellsPlans() bool
}

// A Named source can say what identity a client has that is known by its value:
// the id of an API key, a user's name, an address. So overrides, lists and
// operators name clients.
type Named interface {
	Source
	// For is the client with that value. The error says what values look like.
	For(value string) (Who, error)
}

// ErrUnproved is the error of a credential that was shown and proves nothing: it
// is unknown, forged, expired or meant for somebody else. Its text never repeats it.
var ErrUnproved = errors.New("the credential proves nothing")

// A RequestError refuses a request of which nobody can say whose it is.
type RequestError struct {
	// Status is the HTTP status: 400, 401, 403, 413, 503.
	Status int
	// Detail is a sentence for the client. It repeats nothing that was sent.
	Detail string
}

func (e *RequestError) Error() string { return fmt.Sprintf("%d: %s", e.Status, e.Detail) }

// First is the first of several sources that the request shows: an API key, else
// the user, else the address.
type First []Source

// All is several sources as one client: an account and an address. A request that
// lacks one of them shows no such identity.
type All []Source
