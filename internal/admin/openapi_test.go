package admin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// document is the description, as JSON.
func document(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(description, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// at is what stands in a document by a path of names.
func at(doc any, names ...string) any {
	for _, name := range names {
		m, _ := doc.(map[string]any)
		doc = m[name]
	}
	return doc
}

func TestTheDescriptionHasTheRoutes(t *testing.T) {
	doc := document(t)
	if v, _ := doc["openapi"].(string); !strings.HasPrefix(v, "3.1.") {
		t.Errorf("it is of version %q", v)
	}
	var described, served []string
	for path, methods := range doc["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	for _, r := range routes {
		served = append(served, r.method+" "+r.path)
	}
	slices.Sort(described)
	slices.Sort(served)
	if diff := cmp.Diff(served, described); diff != "" {
		t.Errorf("served, described:\n%s", diff)
	}
	checkReferences(t, doc, doc)
}

// checkReferences wants each reference to lead somewhere.
func checkReferences(t *testing.T, doc, part any) {
	t.Helper()
	switch part := part.(type) {
	case map[string]any:
		if ref, ok := part["$ref"].(string); ok && at(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...) == nil {
			t.Errorf("%s leads nowhere", ref)
		}
		for _, p := range part {
			checkReferences(t, doc, p)
		}
	case []any:
		for _, p := range part {
			checkReferences(t, doc, p)
		}
	}
}

// checkAnswer holds an answer against the description.
func checkAnswer(t *testing.T, method, path string, status int, text string) {
	t.Helper()
	doc := document(t)
	path, _, _ = strings.Cut(path, "?")
	var schema any = map[string]any{"$ref": "#/components/schemas/Problem"}
	if status == 200 {
		for described := range doc["paths"].(map[string]any) {
			begin, _, _ := strings.Cut(described, "{")
			if described == path || begin != described && strings.HasPrefix(path, begin) {
				schema = at(doc, "paths", described, strings.ToLower(method), "responses", "200", "content", "application/json", "schema")
			}
		}
	}
	var answer any
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Errorf("%s %s: %v: %s", method, path, err, text)
		return
	}
	if err := fits(doc, schema, answer); err != nil {
		t.Errorf("%s %s: %v: %s", method, path, err, text)
	}
}

// fits says how a value is not what a schema wants, for the words that ours uses.
func fits(doc, schema, value any) error {
	if ref, ok := at(schema, "$ref").(string); ok {
		return fits(doc, at(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...), value)
	}
	if enum, ok := at(schema, "enum").([]any); ok && !slices.Contains(enum, value) {
		return fmt.Errorf("%v is none of %v", value, enum)
	}
	if kind := at(schema, "type"); kind != nil {
		kinds, several := kind.([]any)
		if !several {
			kinds = []any{kind}
		}
		if !slices.ContainsFunc(kinds, func(k any) bool { return isOf(k.(string), value) }) {
			return fmt.Errorf("%v is no %v", value, kind)
		}
	}
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			if err := fits(doc, at(schema, "items"), v); err != nil {
				return err
			}
		}
	case map[string]any:
		required, _ := at(schema, "required").([]any)
		for _, name := range required {
			if _, ok := value[name.(string)]; !ok {
				return fmt.Errorf("%v is missing", name)
			}
		}
		for name, v := range value {
			property := at(schema, "properties", name)
			if property == nil {
				if property = at(schema, "additionalProperties"); property == false {
					return fmt.Errorf("%s is not described", name)
				}
			}
			if err := fits(doc, property, v); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func isOf(kind string, value any) bool {
	switch v := value.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	case []any:
		return kind == "array"
	}
	return kind == "object"
}
