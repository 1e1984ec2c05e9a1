package httplimit

import (
	"fmt"
	"net/http"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// PerAddress is the short way in: middleware that gives each client address a
// limit such as "100/min burst 20", a token bucket named "default". It believes
// the socket's address and no forwarding header: behind a proxy, and for
// anything more than this, make a [policy.Engine] and call [New].
func PerAddress(store comporta.Store, limit string) (func(http.Handler) http.Handler, error) {
	l, err := comporta.ParseLimit(limit)
	if err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	engine, err := policy.NewEngine(&policy.Policy{
		Limits: []*policy.Limit{{Name: "default", Per: &identity.Address{}, Limit: l}},
	}, store, policy.Options{})
	if err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	return New(engine, Options{}), nil
}
