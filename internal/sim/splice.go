package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// replaceWants is a vector's line with each row's "want" (or "got", in a line
// that was answered before) replaced by "got". The line has been unmarshalled
// already, so it is valid JSON.
func replaceWants(line []byte, got []answer) ([]byte, error) {
	s := splicer{line: line, read: json.NewDecoder(bytes.NewReader(line))}
	seen := false
	s.members(func(name string, _ int64) {
		if name != "takes" {
			s.skip()
			return
		}
		s.token() // [
		i := 0
		for ; i < len(got) && s.more(); i++ {
			s.row(got[i])
		}
		if seen || i < len(got) || s.more() {
			s.err = cmp.Or(s.err, errTwice)
		}
		seen = true
		s.token() // ]
	})
	if s.err == nil && !seen {
		s.err = errTwice
	}
	if s.err != nil {
		return nil, s.err
	}
	return append(s.out, line[s.copied:]...), nil
}

// errTwice: with two members of one name, in whatever case, not all rows that
// were answered are those that are written.
var errTwice = errors.New(`"takes" is wanted once, in lower case`)

// splicer walks a line and copies it with replacements. The first error stops it.
type splicer struct {
	line   []byte
	read   *json.Decoder
	out    []byte
	copied int64 // how much of line is in out, or replaced there
	err    error
}

func (s *splicer) row(got answer) {
	answered, empty := false, true
	end := s.members(func(name string, start int64) {
		empty = false
		s.skip()
		if name == "want" || name == "got" {
			s.put(start, s.read.InputOffset(), got)
			answered = true
		}
	})
	if answered || s.err != nil {
		return
	}
	// The end of the row's last value: before the brace and the blanks ahead of it.
	end = int64(len(bytes.TrimRight(s.line[:end-1], " \t\r\n")))
	s.out = append(s.out, s.line[s.copied:end]...)
	s.copied = end
	if !empty {
		s.out = append(s.out, ", "...)
	}
	s.put(end, end, got)
}

// put writes "got" in place of line[from:to].
func (s *splicer) put(from, to int64, a answer) {
	s.out = append(s.out, s.line[s.copied:from]...)
	s.out = fmt.Appendf(s.out, `"got": {"allowed": %t, "limit": %d, "remaining": %d, "reset_after_us": %d, "full_after_us": %d, "retry_after_us": %d, "delay_us": %d}`,
		a.Allowed, a.Limit, a.Remaining, a.ResetAfter, a.FullAfter, a.RetryAfter, a.Delay)
	s.copied = to
}

// members visits the members of the object that is read next, with each name and
// where it starts; the visit reads the value. The result is where the object ends.
func (s *splicer) members(visit func(name string, start int64)) (end int64) {
	s.token() // {
	for s.more() {
		start := s.read.InputOffset()
		start += int64(bytes.IndexByte(s.line[start:], '"')) // past blanks and a comma
		name, _ := s.token().(string)
		visit(name, start)
	}
	s.token() // }
	return s.read.InputOffset()
}

func (s *splicer) more() bool { return s.err == nil && s.read.More() }

func (s *splicer) token() json.Token {
	if s.err != nil {
		return nil
	}
	t, err := s.read.Token()
	s.err = err
	return t
}

// skip reads one value.
func (s *splicer) skip() {
	if s.err == nil {
		var value json.RawMessage
		s.err = s.read.Decode(&value)
	}
}
