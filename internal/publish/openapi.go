package publish

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/comporta/comporta/policy"
)

// The overlay is of the OpenAPI Overlay Specification 1.0.0: what it adds to a
// description of the API, by JSONPath.
type overlay struct {
	Version string   `json:"overlay"`
	Info    info     `json:"info"`
	Actions []action `json:"actions"`
}

type info struct {
	Title   string `json:"title"`
	Version string `json:"version"`
}

type action struct {
	Target      string `json:"target"`
	Description string `json:"description,omitempty"`
	Update      any    `json:"update,omitempty"`
	Remove      bool   `json:"remove,omitempty"`
}

// operations are those of a path, which has other things beside them: parameters,
// a summary, servers.
const operations = "['get','put','post','delete','options','head','patch','trace']"

// told is a limit as an operation is told of it.
type told struct {
	Name  string            `json:"name"`
	Limit string            `json:"limit"`
	Plans map[string]string `json:"plans,omitempty"`
	Per   string            `json:"per"`
	Bound string            `json:"bound"`
	Cost  string            `json:"cost,omitempty"`
}

// Overlay is an OpenAPI overlay, as JSON: each operation gets its limits under
// x-rate-limits, and a 429 in its responses.
func Overlay(p *policy.Policy, o Options) (string, error) {
	out := overlay{Version: "1.0.0", Info: info{o.title(), "1"}, Actions: []action{}}
	limits := published(p)
	for _, e := range sorted(endpoints(limits)) {
		limited := []told{}
		for _, l := range limits {
			if e.under(l) {
				limited = append(limited, tell(p, l, e))
			}
		}
		if e.pattern != nil { // what holds for all others would be merged with it
			out.Actions = append(out.Actions, action{Target: e.target() + "['x-rate-limits']", Remove: true})
		}
		if len(limited) == 0 {
			continue
		}
		out.Actions = append(out.Actions, action{
			Target: e.target(), Description: "limits of " + e.plain(),
			Update: map[string]any{"x-rate-limits": limited, "responses": map[string]any{"429": refusal}},
		})
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return "", fmt.Errorf("the overlay cannot be written: %w", err)
	}
	return string(text) + "\n", nil
}

// sorted has what is for all operations first, and what is for single ones after
// it: of actions on one operation the later ones win.
func sorted(all []endpoint) []endpoint {
	wide := func(e endpoint) int {
		switch {
		case e.pattern == nil:
			return 0
		case strings.HasSuffix(e.target(), operations):
			return 1
		}
		return 2
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b endpoint) int { return wide(a) - wide(b) })
}

// target is the operations of an endpoint, as a JSONPath (RFC 9535).
func (e endpoint) target() string {
	if e.pattern == nil {
		return "$.paths.*" + operations
	}
	method, path, found := strings.Cut(e.pattern.String(), " ")
	if !found {
		method, path = "", method
	}
	path = path[strings.IndexByte(path, '/'):]
	path = strings.ReplaceAll(strings.TrimSuffix(path, "{$}"), "...}", "}")
	key := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(path)
	if method == "" {
		return fmt.Sprintf("$.paths['%s']%s", key, operations)
	}
	return fmt.Sprintf("$.paths['%s'].%s", key, strings.ToLower(method))
}

func (e endpoint) plain() string { return strings.Trim(e.text(), "`") }

func tell(p *policy.Policy, l *policy.Limit, e endpoint) told {
	t := told{Name: l.Name, Limit: l.Limit.String(), Per: strings.TrimPrefix(whose(l.Per), "per "), Bound: bound(l, l.Limit), Cost: e.cost(l)}
	for _, name := range slices.Sorted(maps.Keys(p.Plans)) {
		if said, ok := p.Plans[name][l.Name]; ok {
			if t.Plans == nil {
				t.Plans = make(map[string]string)
			}
			t.Plans[name] = l.With(said).String()
		}
	}
	return t
}

// refusal is the response that refused requests get.
var refusal = map[string]any{
	"description": "Over a rate limit. Nothing was done: send it again after Retry-After seconds.",
	"headers": map[string]any{
		"Retry-After": map[string]any{
			"description": "In how many seconds the same request passes; missing where it never can.",
			"schema":      map[string]any{"type": "integer", "minimum": 1},
		},
	},
	"content": map[string]any{
		"application/problem+json": map[string]any{
			"schema": map[string]any{
				"type": "object",
				"properties": map[string]any{
					"type":   map[string]any{"type": "string", "format": "uri"},
					"title":  map[string]any{"type": "string"},
					"status": map[string]any{"type": "integer"},
					"detail": map[string]any{"type": "string"},
					"violated-policies": map[string]any{
						"type": "array", "items": map[string]any{"type": "string"},
					},
				},
			},
		},
	},
}
