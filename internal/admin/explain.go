package admin

import (
	"fmt"

	"github.com/comporta/comporta/internal/explain"
)

// An Explain asks what would become of a request, as things stand.
type Explain struct {
	// Request is a request line, as "GET /search", or a whole request as it goes over
	// the wire; Headers are more header lines of it.
	Request string   `json:"request"`
	Headers []string `json:"headers,omitempty"`
	// From is the address that connects.
	From string `json:"from,omitempty"`
}

// explained looks at a request. It spends nothing.
func explained(c *call) (any, error) {
	var said Explain
	if err := c.read(&said); err != nil {
		return nil, err
	}
	_, engine := c.o.InForce()
	r, err := explain.Parse(engine, []byte(said.Request), explain.Options{Headers: said.Headers, From: said.From})
	if err != nil {
		return nil, unprocessable(fmt.Sprintf("There is nothing to explain: %v.", err))
	}
	return explain.Explain(c.Context(), engine, r)
}
