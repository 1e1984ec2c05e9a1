package admin

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/comporta/comporta/policy"
)

// A route is something that can be asked for. The description in openapi.json has
// the same.
type route struct {
	method, path string
	do           func(*call) (any, error)
}

var routes = []route{
	{"GET", "/v1/identities/{who}", show},
	{"GET", "/v1/top", top},
	{"POST", "/v1/reset", reset},
	{"POST", "/v1/grant", grant},
	{"GET", "/v1/overrides", listOverrides},
	{"POST", "/v1/overrides", addOverride},
	{"DELETE", "/v1/overrides/{id}", endOverride},
	{"POST", "/v1/explain", explained},
	{"POST", "/explain", explained},
	{"GET", "/v1/openapi.json", describe},
}

//go:embed openapi.json
var description []byte

func describe(*call) (any, error) { return json.RawMessage(description), nil }

// unprocessable is the failure of what is understood and cannot be done.
func unprocessable(detail string) error {
	return &failure{http.StatusUnprocessableEntity, detail}
}

// who is the client that a text names, under the policy in force. Its plan is the
// one that is said, where one is.
func (c *call) who(text, plan string) (*policy.Engine, policy.Listed, error) {
	cfg, engine := c.o.InForce()
	who, stored := cfg.Stored(text)
	if !stored {
		var err error
		if who, err = cfg.Who(text); err != nil {
			return nil, who, unprocessable(fmt.Sprintf("Nobody is named by that: %v.", err))
		}
	}
	if plan != "" {
		if _, known := engine.Policy().Plans[plan]; !known {
			return nil, who, unprocessable("The policy has no such plan.")
		}
		who.Who.Plan = plan
	}
	return engine, who, nil
}

// refused is an engine's error as an answer: what the policy says no to is not
// possible; all else is the store's.
func refused(err error) error {
	if err == nil {
		return nil
	}
	if said, ok := strings.CutPrefix(err.Error(), "policy: "); ok {
		return unprocessable(said + ".")
	}
	return fmt.Errorf("the store cannot be asked: %w", err)
}
