package policy

import (
	"bytes"
	"strings"

	"github.com/comporta/comporta"
)

// A streamKind is how an answer's body is made of JSON.
type streamKind uint8

const (
	document streamKind = iota // one document
	lines                      // a document on each line
	events                     // server-sent events, whose data are documents
)

// streamOf is the kind of an answer's body by its header; false where it is no JSON
// or is compressed.
func streamOf(header map[string][]string) (streamKind, bool) {
	for _, coding := range header["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			return 0, false
		}
	}
	types := header["Content-Type"]
	if len(types) == 0 {
		return 0, false
	}
	name, _, _ := strings.Cut(types[0], ";")
	switch name = strings.ToLower(strings.Trim(name, " \t")); name {
	case "text/event-stream":
		return events, true
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/stream+json":
		return lines, true
	}
	return document, name == "application/json" || strings.HasSuffix(name, "+json")
}

// A reading finds a number in an answer's body as it streams past. Of several
// documents the last one that has it counts. It keeps nothing of the body.
type reading struct {
	kind streamKind
	scan numberScan

	units int64
	found bool
	over  bool // the body says that nothing more comes

	event event
}

// read reads on.
func (r *reading) read(data []byte) {
	if r.over {
		return
	}
	switch r.kind {
	case document:
		r.scan.read(data)
		r.over = r.scan.complete()
	case lines:
		for {
			line, rest, ended := bytes.Cut(data, []byte("\n"))
			r.scan.read(line)
			if !ended {
				return
			}
			r.next()
			data = rest
		}
	case events:
		r.readEvents(data)
	}
}

// next counts the document that was read, to its end or not, and makes ready for
// another one.
func (r *reading) next() {
	if r.scan.found && r.scan.number <= comporta.MaxCost {
		r.units, r.found = r.scan.number, true
	}
	r.scan.begin()
}
