package policy

import "strings"

// FindNumber is the number at a place in a JSON document, such as usage.total_tokens:
// the keys of the objects around it, with dots between them. The document may be the
// beginning of one. A fraction is rounded up; where the place is there several times,
// the largest number counts. It reports false where no number is there that is at
// least 0 and fits, and reads nothing behind what is no JSON.
func FindNumber(data []byte, place string) (int64, bool) {
	s := numberScan{place: strings.Split(place, ".")}
	s.read(data)
	return s.number, s.found
}

const (
	// mostDepth is how deep documents may be nested; nothing is found in deeper ones.
	mostDepth = 512
	// mostDigits is how long a number may be written.
	mostDigits = 40
)

// A numberScan is FindNumber for a document that comes in pieces. It keeps nothing
// of what it has read but where it is: its size does not hang on the document. It is
// no judge of JSON: what it lets pass that is none, it finds nothing wrong in.
type numberScan struct {
	place []string // its keys

	number int64
	found  bool

	state scanState
	// depth is how many objects and arrays are open; the bits of objects say which of
	// them are objects.
	depth   int
	objects [mostDepth / 64]uint64
	// on is how many keys of the place the open objects lie at: all of those that are
	// open do where it is depth − 1.
	on  int
	key keyMatch
	// here says that the value which begins or is being read lies at the next key of
	// the place.
	here    bool
	escaped bool // in a value's string, behind a backslash
	digits  [mostDigits]byte
	count   int // of the number's characters
}

type scanState uint8

const (
	atValue      scanState = iota // a value begins
	atFirst                       // or an array ends
	atKeyOrEnd                    // a key begins, or an object ends
	atKey                         // a key begins
	inKey                         // within its quotes
	atColon                       // behind it
	inString                      // within a value's quotes
	inNumber                      // within a number
	inWord                        // within true, false, null
	behind                        // behind a value: a comma, or an end
	scanComplete                  // behind the document
	scanBroken                    // no JSON
)

// begin makes it ready for another document.
func (s *numberScan) begin() {
	s.number, s.found = 0, false
	s.state, s.depth, s.on, s.here = atValue, 0, 0, false
}

// complete says whether the document has been read to its end.
func (s *numberScan) complete() bool { return s.state == scanComplete }

// read reads on.
func (s *numberScan) read(data []byte) {
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch s.state {
		case scanComplete, scanBroken:
			return
		case inString:
			i += s.skip(data[i:])
		case inKey:
			s.inKey(c)
		case inNumber:
			if !isNumeric(c) {
				s.endNumber()
				s.between(c)
				continue
			}
			s.digit(c)
		case inWord:
			if c < 'a' || c > 'z' {
				s.endValue()
				s.between(c)
			}
		default:
			s.between(c)
		}
	}
}

// skip goes on in a value's string, and says how far beyond the first byte.
func (s *numberScan) skip(data []byte) int {
	for i, c := range data {
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.endValue()
			return i
		}
	}
	return len(data)
}

func (s *numberScan) inKey(c byte) {
	if end, ok := s.key.next(c); !ok {
		s.state = scanBroken
	} else if end {
		s.here, s.state = s.key.same(), atColon
	}
}

// between reads a byte that is in no string, number or word.
func (s *numberScan) between(c byte) {
	if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
		return
	}
	switch s.state {
	case atFirst:
		if c == ']' {
			s.close()
			return
		}
		s.value(c)
	case atValue:
		s.value(c)
	case atKeyOrEnd, atKey:
		switch {
		case c == '"':
			want, compares := "", s.on == s.depth-1 && s.on < len(s.place)
			if compares {
				want = s.place[s.on]
			}
			s.key, s.state = keyMatch{want: want, off: !compares}, inKey
		case c == '}' && s.state == atKeyOrEnd:
			s.close()
		default:
			s.state = scanBroken
		}
	case atColon:
		if s.state = atValue; c != ':' {
			s.state = scanBroken
		}
	case behind:
		object := s.inObject()
		switch {
		case c == ',' && object:
			s.state = atKey
		case c == ',':
			s.here, s.state = false, atValue
		case c == '}' && object, c == ']' && !object:
			s.close()
		default:
			s.state = scanBroken
		}
	}
}

// value begins one.
func (s *numberScan) value(c byte) {
	switch {
	case c == '{' || c == '[':
		s.open(c == '{')
	case c == '"':
		s.state, s.escaped = inString, false
	case c == '-' || '0' <= c && c <= '9':
		s.state, s.count = inNumber, 0
		s.digit(c)
	case c == 't' || c == 'f' || c == 'n':
		s.state = inWord
	default:
		s.state = scanBroken
	}
}

func (s *numberScan) open(object bool) {
	if s.depth == mostDepth {
		s.state = scanBroken
		return
	}
	if object && s.here {
		s.on++ // here is only where on was depth − 1
	}
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	s.depth++
	s.here = false
	if object {
		s.objects[word] |= bit
		s.state = atKeyOrEnd
	} else {
		s.objects[word] &^= bit
		s.state = atFirst
	}
}

func (s *numberScan) inObject() bool {
	top := s.depth - 1
	return s.objects[top/64]>>(top%64)&1 == 1
}

func (s *numberScan) close() {
	s.depth--
	s.on = min(s.on, max(0, s.depth-1))
	s.endValue()
}

func (s *numberScan) endValue() {
	s.here = false
	if s.state = behind; s.depth == 0 {
		s.state = scanComplete
	}
}

// digit keeps a character of a number. What is too long to be kept is no number.
func (s *numberScan) digit(c byte) {
	if s.count < mostDigits {
		s.digits[s.count] = c
	}
	s.count = min(s.count+1, mostDigits+1)
}

func (s *numberScan) endNumber() {
	if s.here && s.on == len(s.place)-1 && s.count <= mostDigits {
		if n, ok := wholeUnits(s.digits[:s.count]); ok {
			s.number, s.found = max(n, s.number), true
		}
	}
	s.endValue()
}

func isNumeric(c byte) bool {
	return '0' <= c && c <= '9' || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E'
}
