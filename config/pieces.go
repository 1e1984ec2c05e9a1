package config

import "bytes"

// keysForm is a piece of a file of keys.
var keysForm = form{
	what: "a list of API keys", empty: "list the keys, each with id: and key: or sha256:; write [] for none",
	tooLarge: "an item of the list is larger than 256 KiB", tooWordy: "an item of the list has too many words",
	secret: true,
}

// A piece is some items of a list, how many lines stand before them, and how many
// they are; 0 where nobody has counted.
type piece struct {
	data        []byte
	line, items int
}

// A piece ends at the item after so many items or bytes.
const (
	pieceItems = 200
	pieceBytes = 32 << 10
)

// pieces parts a file that is one long list, or has it under the word keys, where
// its items begin: the YAML parser takes some ten kilobytes of memory for an item.
// What is no such file is one piece.
func pieces(data []byte) []piece {
	head, indent := listStart(data)
	if indent < 0 {
		return []piece{{data: data}}
	}
	line := bytes.Count(data[:head], []byte("\n"))
	out := []piece{{line: line}}
	from, at := head, head
	for text := range bytes.Lines(data[head:]) {
		last := &out[len(out)-1]
		if itemIndent(text) == indent {
			if last.items >= pieceItems || len(last.data) >= pieceBytes {
				out, from = append(out, piece{line: line}), at
				last = &out[len(out)-1]
			}
			last.items++
		}
		at, line = at+len(text), line+1
		last.data = data[from:at]
	}
	return out
}

// listStart is how many bytes stand before a list, and how far its items are
// indented; -1 where the file begins otherwise.
func listStart(data []byte) (head, indent int) {
	at := 0
	for text := range bytes.Lines(data) {
		if indent := itemIndent(text); indent >= 0 {
			return head, indent
		}
		at += len(text)
		said, _, _ := bytes.Cut(text, []byte("#"))
		switch string(bytes.TrimSpace(said)) {
		case "":
		case "keys:":
			if head > 0 {
				return 0, -1
			}
			head = at
		default:
			return 0, -1
		}
	}
	return 0, -1
}

// itemIndent is how far the item of a list is indented that begins in a line; -1
// where none does.
func itemIndent(line []byte) int {
	rest := bytes.TrimLeft(line, " ")
	if dash := bytes.TrimLeft(rest, "-"); len(rest)-len(dash) != 1 || len(dash) > 0 && !bytes.ContainsAny(dash[:1], " \r\n") {
		return -1
	}
	return len(line) - len(rest)
}
