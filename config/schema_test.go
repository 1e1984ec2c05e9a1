package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// fits says why a value is not of a schema, as much of JSON Schema as ours uses.
func fits(schema map[string]any, v any) error {
	for word, want := range schema {
		if err := fitsWord(schema, word, want, v); err != nil {
			return err
		}
	}
	return nil
}

func fitsWord(schema map[string]any, word string, want, v any) error {
	text, isText := v.(string)
	number, isNumber := v.(float64)
	object, isObject := v.(map[string]any)
	items, isList := v.([]any)
	switch word {
	case "$schema", "title", "description":
	case "type":
		is := map[string]bool{"string": isText, "integer": isNumber && number == float64(int64(number)), "object": isObject, "array": isList}
		if _, isBool := v.(bool); !is[want.(string)] && !(isBool && want == "boolean") {
			return fmt.Errorf("%v is no %v", v, want)
		}
	case "enum":
		if !slices.Contains(want.([]any), v) {
			return fmt.Errorf("%v is none of %v", v, want)
		}
	case "pattern":
		if isText && !regexp.MustCompile(want.(string)).MatchString(text) {
			return fmt.Errorf("%q does not match %s", text, want)
		}
	case "minLength":
		if isText && utf8.RuneCountInString(text) < int(want.(float64)) {
			return fmt.Errorf("%q is too short", text)
		}
	case "minimum":
		if isNumber && number < want.(float64) {
			return fmt.Errorf("%v is too small", number)
		}
	case "maximum":
		if isNumber && number > want.(float64) {
			return fmt.Errorf("%v is too large", number)
		}
	case "anyOf", "oneOf":
		n := 0
		var why error
		for _, s := range want.([]any) {
			if err := fits(s.(map[string]any), v); err != nil {
				why = err
			} else {
				n++
			}
		}
		if n == 0 || word == "oneOf" && n > 1 {
			return fmt.Errorf("%s: %d fit: %v", word, n, why)
		}
	case "items":
		for _, item := range items {
			if err := fits(want.(map[string]any), item); err != nil {
				return err
			}
		}
	case "required":
		for _, name := range want.([]any) {
			if _, ok := object[name.(string)]; isObject && !ok {
				return fmt.Errorf("%v is missing", name)
			}
		}
	case "properties", "additionalProperties":
		for name, value := range object {
			if err := fitsProperty(schema, word, name, value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	default:
		return fmt.Errorf("the schema uses %q, which this test does not know", word)
	}
	return nil
}

func fitsProperty(schema map[string]any, word, name string, value any) error {
	properties, _ := schema["properties"].(map[string]any)
	known, ok := properties[name].(map[string]any)
	others, open := schema["additionalProperties"].(map[string]any)
	switch {
	case ok && word == "properties":
		return fits(known, value)
	case !ok && word == "additionalProperties" && open:
		return fits(others, value)
	case !ok && word == "additionalProperties" && schema[word] == false:
		return fmt.Errorf("an unknown word")
	}
	return nil
}

// plain is a tree as encoding/json would have it.
func plain(n *node) any {
	switch n.kind {
	case mapping:
		out := map[string]any{}
		for _, e := range n.entries {
			out[e.key.text] = plain(e.value)
		}
		return out
	case list:
		out := []any{}
		for _, item := range n.items {
			out = append(out, plain(item))
		}
		return out
	case boolean:
		return strings.EqualFold(n.text, "true")
	case number:
		v, _ := strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64)
		return v
	case nothing:
		return nil
	}
	return n.text
}

func schemaFits(t *testing.T, name string, data []byte) error {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	top, problems := readTree(name, data, &policyForm)
	if problems != nil {
		t.Fatal(problems)
	}
	return fits(schema, plain(top))
}

func TestTheSchemaTakesGoodFiles(t *testing.T) {
	for _, file := range files(t, "good") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemaFits(t, filepath.Base(file), data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestTheSchemaRefusesWhatASchemaCan(t *testing.T) {
	for _, name := range []string{"unknown-words", "later-words", "types", "missing", "server", "list"} {
		data, err := os.ReadFile(filepath.Join("testdata", "bad", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if schemaFits(t, name, data) == nil {
			t.Errorf("%s.yaml is taken", name)
		}
	}
	for _, text := range []string{
		"sever: {}", "server: {listen: 8080}", "store: {memory: {max_keys: 0}}", "store: {redis: {}}", "headers: [draft]",
		"cors: {}", "paths: lax", "paths: {loose: yes}", "identities: {address: {ipv6_prefix: 129}}",
		"identities: {address: {ipv6_outer: {times: 0}}}", "server: {timeouts: {idle: 5}}", "server: {max_body_bytes: 10MB}",
		"limits: [{name: a, per: address}]", "limits: [{name: a, limit: 1/s}]", "limits: [{per: address, limit: 1/s}]",
		"limits: [{name: a, per: address, limit: 1/s, quota: 1/day}]", "limits: [{name: A, per: address, limit: 1/s}]",
		"limits: [{name: a, per: users, limit: 1/s}]", "limits: [{name: a, per: {}, limit: 1/s}]", "limits: [{name: a, per: {header: X, path: y}, limit: 1/s}]",
		"limits: [{name: a, per: address, limit: 5}]", "limits: [{name: a, per: address, limit: 1/s, charge: failure}]",
		"limits: [{name: a, per: address, limit: 1/s, cost: 0}]", "limits: [{name: a, per: address, limit: 1/s, cost: {/: -1}}]", "limits: {}",
		"plans: [free]", "plans: {free: {a: 5}}", "plans: {free: unlimited}", "marks: {secret: x}", "overrides: {}", "overrides: [{who: acme, limits: {a: 1/s}}]",
		"overrides: [{who: {api_key: acme}}]", "overrides: [{who: {header: X-P}, limits: {a: 1/s}}]", "overrides: [{who: {api_key: acme}, limits: {a: 1/s}, through: tomorrow}]",
		"limits: [{name: a, per: address, limit: 1/s, on_missing: never}]", "limits: [{name: a, per: address, limit: 1/s, cost: {header: X-Cost}}]",
		"limits: [{name: a, per: address, limit: 1/s, cost: {estimate: {default: 1}}}]", "limits: [{name: a, per: address, limit: 1/s, cost: {estimate: {default: 1}, from: {}}}]",
		"limits: [{name: a, per: address, limit: 1/s, charge: failures, failure: {status: [600]}}]", "limits: [{name: a, per: address, limit: 1/s, charge: failures, failure: {status: 6xx}}]",
		"limits: [{name: a, per: address, limit: 1/s, enforce: 25}]", "limits: [{name: a, per: address, limit: 1/s, on_limit: {status: 200}}]",
		"limits: [{name: a, per: address, limit: 1/s, block: 5}]", "limits: [{name: a, per: address, quota: 1/day, warn_at: 80}]", "limits: [{name: a, per: address, quota: 1/day, warn_at: {header: X-W}}]",
		"limits: [{name: a, per: address, limit: 1/s, lockout: yes}]",
	} {
		if schemaFits(t, "x.yaml", []byte(text)) == nil {
			t.Errorf("taken: %s", text)
		}
		if _, err := Parse("x.yaml", []byte(text)); err == nil {
			t.Errorf("the reader takes what the schema refuses: %s", text)
		}
	}
}
