package httplimit

import (
	"net/http"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// Request is a request as limits look at it, its path as it came: for the engine's
// other doors, such as [policy.Engine.LookAtCaller].
func Request(r *http.Request) *identity.Request {
	q := new(identity.Request)
	look(q, r, r.URL.Path)
	return q
}

// NewCORS makes what puts the CORS fields of the engine's policy into an answer
// that a handler gives in the API's place, so that the pages it allows can read
// it. It is safe for concurrent use.
func NewCORS(engine *policy.Engine) func(h http.Header, r *http.Request) {
	p := engine.Policy()
	return newCORS(p, setsOf(p.Headers)).allow
}
