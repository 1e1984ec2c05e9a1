package config

import "encoding/json"

// A shape is a piece of JSON Schema.
type shape map[string]any

// Patterns of texts, for the reader and the schema.
const (
	namePattern     = `^[a-z*][a-z0-9_.*-]*$`
	durationPattern = `^([0-9]+(w|d|h|m|s|ms|us))+$`
	sizePattern     = `^[0-9][0-9_]*(KiB|MiB|GiB)$`
	prefixPattern   = `^[A-Za-z0-9_.:-]{1,64}$`
	percentPattern  = `^[0-9]+%$`
	planPattern     = `^[a-z0-9_-]{1,64}$`
	classPattern    = `^[1-5]xx$`
	placePattern    = `^[A-Za-z0-9_$-]+(\.[A-Za-z0-9_$-]+)*$`
	dayPattern      = `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
)

var (
	aText     = shape{"type": "string", "minLength": 1}
	aBoolean  = shape{"type": "boolean"}
	aDuration = matching(durationPattern)
	aSize     = either(aNumber(1, maxSize), matching(sizePattern))
)

func aNumber(least, most int64) shape {
	return shape{"type": "integer", "minimum": least, "maximum": most}
}

func matching(pattern string) shape { return shape{"type": "string", "pattern": pattern} }

func oneOf(choices ...string) shape { return shape{"enum": choices} }

func either(shapes ...shape) shape { return shape{"anyOf": shapes} }

func listOf(item shape) shape { return shape{"type": "array", "items": item} }

// oneOrList is a list whose brackets may be left out around one item.
func oneOrList(item shape) shape { return either(item, listOf(item)) }

func mapOf(value shape) shape { return shape{"type": "object", "additionalProperties": value} }

// object is a mapping of the words that are built, and no others.
func object(words []word, required ...string) shape {
	properties := shape{}
	for _, w := range words {
		if w.instead != "" {
			continue
		}
		described := shape{"description": w.doc}
		for k, v := range w.shape {
			described[k] = v
		}
		properties[w.name] = described
	}
	out := shape{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// exactlyOne wants one of two words in an object.
func exactlyOne(object shape, a, b string) shape {
	object["oneOf"] = []shape{{"required": []string{a}}, {"required": []string{b}}}
	return object
}

// Schema is the JSON Schema (2020-12) of the file: what an editor needs to
// complete and check words, types and choices. What it lets through Parse may
// still refuse, since a schema cannot read patterns, zones and numbers in text.
func Schema() []byte { return schemaOf("Comporta policy", object(fileWords)) }

// EgressSchema is that of an egress file.
func EgressSchema() []byte { return schemaOf("Comporta egress", object(egressWords, "apis")) }

func schemaOf(title string, s shape) []byte {
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("config: the schema is a literal and always marshals: " + err.Error())
	}
	return append(out, '\n')
}
