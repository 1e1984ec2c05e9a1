package policy

import (
	"fmt"
	"strings"
	"testing"
)

// inPieces reads a body piece by piece.
func inPieces(r *reading, body string, size int) (units int64, found, over bool) {
	for ; body != ""; body = body[min(size, len(body)):] {
		r.read([]byte(body[:min(size, len(body))]))
	}
	over = r.over
	r.next()
	return r.units, r.found, over
}

func TestNumbersInStreams(t *testing.T) {
	const usage = `{"usage":{"n":%d}}`
	n := func(n int) string { return fmt.Sprintf(usage, n) }
	for _, c := range []struct {
		name, contentType, body string
		want                    int64 // −1: none
		over                    bool
	}{
		{"a document", "application/json", n(7), 7, true},
		{"with a charset and a profile", "Application/Problem+JSON; charset=utf-8", " " + n(7) + "\n", 7, true},
		{"half a document", "application/json", `{"usage":{"n":7},"x":`, 7, false},
		{"no document", "application/json", "no", -1, false},
		{"too large to be a cost", "application/json", `{"usage":{"n":9007199254740992}}`, -1, true},
		{"the largest cost", "application/json", `{"usage":{"n":9007199254740991}}`, 9007199254740991, true},

		{"lines", "application/x-ndjson", n(1) + "\n" + n(2) + "\r\n{}\n", 2, false},
		{"lines, the last without an end", "application/jsonl", n(1) + "\n" + n(2), 2, false},
		{"lines of which one is broken", "application/ndjson", "{{{\n" + n(1) + "\n\n]\n", 1, false},
		{"lines that count down", "application/x-ndjson", n(5) + "\n" + n(2) + "\n", 2, false},

		{"events", "text/event-stream", "data: " + n(1) + "\n\ndata: " + n(2) + "\n\n", 2, false},
		{"events of one line end each", "text/event-stream; charset=utf-8", "data: " + n(1) + "\r\rdata:" + n(2) + "\r\n\r\n", 2, false},
		{"done", "text/event-stream", "data: " + n(1) + "\n\ndata: [DONE]\n\ndata: " + n(9) + "\n\n", 1, true},
		{"done without a blank", "text/event-stream", "data: " + n(1) + "\n\ndata:[DONE]\r", 1, true},
		{"not yet done", "text/event-stream", "data: " + n(1) + "\n\ndata: [DONE]", 1, false},
		{"nearly done", "text/event-stream", "data: [DONE] \n\ndata: [DON]\n\ndata:  [DONE]\n\ndata: [DONE]]\n\n", -1, false},
		{"done in a second line", "text/event-stream", "data\ndata: [DONE]\n\n", -1, false},
		{"no usage after all", "text/event-stream", "data: " + n(1) + "\n\ndata: {\"usage\":null}\n\n", 1, false},
		{"data on several lines", "text/event-stream", "data: {\"usage\":\ndata: {\"n\":\ndata\ndata:3}}\n\n", 3, false},
		{"other fields and comments", "text/event-stream", ": hello\nevent: m\nid: 1\ndat: x\ndatas: x\n:data: {\nretry: 5\ndata: " + n(4) + "\nid\n\n", 4, false},
		{"a byte order mark", "text/event-stream", "\ufeffdata: " + n(4) + "\n\n", 4, false},
		{"its beginning", "text/event-stream", "\xef\xbbdata: " + n(4) + "\n\ndata: " + n(3) + "\n\n", 3, false},
		{"an event without its end", "text/event-stream", "data: " + n(4) + "\n", 4, false},
		{"an event that is cut", "text/event-stream", "data: " + n(4) + "\n\ndata: {\"usage\":{\"n\":9", 4, false},
		{"events with empty lines", "text/event-stream", "\n\n\r\n\rdata: " + n(4) + "\n\n\n\n", 4, false},
		{"a broken event", "text/event-stream", "data: }{\n\ndata: " + n(4) + "\n\n", 4, false},
		{"a space in the name", "text/event-stream", " data: " + n(4) + "\n\n", -1, false},
	} {
		for _, size := range []int{1, 2, 3, 7, 1000} {
			kind, is := streamOf(map[string][]string{"Content-Type": {c.contentType}})
			if !is {
				t.Fatalf("%s: %s is no JSON", c.name, c.contentType)
			}
			r := &reading{kind: kind, scan: numberScan{place: []string{"usage", "n"}}}
			got, found, over := inPieces(r, c.body, size)
			if !found {
				got = -1
			}
			if got != c.want || over != c.over {
				t.Errorf("%s, in pieces of %d: %d, over %v; want %d, over %v", c.name, size, got, over, c.want, c.over)
			}
		}
	}
}

func TestWhatIsRead(t *testing.T) {
	for header, want := range map[string]bool{
		"Content-Type: application/json":         true,
		"Content-Type: application/vnd.api+json": true,
		"Content-Type: text/plain":               false,
		"Content-Type: application/jsonx":        false,
		"":                                       false,
		"Content-Type: application/json\nContent-Encoding: identity":   true,
		"Content-Type: application/json\nContent-Encoding: gzip":       false,
		"Content-Type: text/event-stream\nContent-Encoding: br":        false,
		"Content-Type: application/json\nContent-Encoding: gzip, gzip": false,
	} {
		h := map[string][]string{}
		for line := range strings.Lines(header) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			h[name] = append(h[name], value)
		}
		if _, got := streamOf(h); got != want {
			t.Errorf("%q: read %v, want %v", header, got, want)
		}
	}
}

// Whatever the pieces, events say the same, and none panics.
func FuzzEvents(f *testing.F) {
	f.Add("data: {\"usage\":{\"n\":1}}\r\n\r\ndata: [DONE]\n\n", 3)
	f.Add("\ufeffdata\ndata:{\"usage\":\rdata: {\"n\":2}}\r\r", 1)
	f.Fuzz(func(t *testing.T, body string, size int) {
		read := func(size int) string {
			units, found, over := inPieces(&reading{kind: events, scan: numberScan{place: []string{"usage", "n"}}}, body, size)
			return fmt.Sprint(units, found, over)
		}
		if whole, pieces := read(len(body)+1), read(max(size, 1)); whole != pieces {
			t.Errorf("whole %s, in pieces %s", whole, pieces)
		}
		var want reading
		want.scan.place = []string{"usage", "n"}
		all, done := eventsOf(body)
		for _, data := range all {
			want.scan.read([]byte(data))
			want.next()
		}
		if got := read(1); got != fmt.Sprint(want.units, want.found, done) {
			t.Errorf("%q: %s, want %d %v %v", body, got, want.units, want.found, done)
		}
	})
}

// eventsOf is the data of a stream's events up to [DONE], the last one as if it had
// its end.
func eventsOf(body string) (all []string, done bool) {
	body = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(body, byteOrderMark))
	var data []string
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			all, data = append(all, strings.Join(data, "\n")), nil
		case name == "data" && value == doneData && data == nil && i+1 < len(lines):
			return all, true
		case name == "data":
			data = append(data, value)
		}
	}
	return append(all, strings.Join(data, "\n")), false
}
