package httplimit

import (
	"net/http"

	"github.com/comporta/comporta/policy"
)

// NewProblem makes the answer that a handler gives in the API's place, such as a
// proxy's 502: a problem document (RFC 9457) that no cache keeps, with the CORS
// fields of the engine's policy, so that the pages it allows can read what went
// wrong, as they can a refusal. The detail is sent as it is. It is safe for
// concurrent use.
func NewProblem(engine *policy.Engine) func(w http.ResponseWriter, r *http.Request, status int, detail string) {
	p := engine.Policy()
	g := &guard{cors: newCORS(p, setsOf(p.Headers))}
	return g.answerProblem
}
