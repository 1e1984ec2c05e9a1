package identity

import (
	"strconv"
	"strings"
)

// Identity is that of the first source that the request shows.
func (f First) Identity(r *Request) (string, bool) {
	for _, s := range f {
		if id, shown := s.Identity(r); shown {
			return id, true
		}
	}
	return "", false
}

func (f First) String() string { return "[" + join(f) + "]" }

// Identity is those of all sources, joined.
func (a All) Identity(r *Request) (string, bool) {
	ids := make([]string, len(a))
	for i, s := range a {
		id, shown := s.Identity(r)
		if !shown {
			return "", false
		}
		ids[i] = id
	}
	return Join(ids...), true
}

func (a All) String() string { return "{all: [" + join(a) + "]}" }

func join(sources []Source) string {
	texts := make([]string, len(sources))
	for i, s := range sources {
		texts[i] = s.String()
	}
	return strings.Join(texts, ", ")
}

// Join makes several identities one: "all:" and each with its length before it,
// so that no two lists are ever the same text. It allocates the text alone.
func Join(ids ...string) string {
	size := len("all:")
	for _, id := range ids {
		size += len(id) + 4
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString("all:")
	var room [20]byte
	for _, id := range ids {
		b.Write(strconv.AppendInt(room[:0], int64(len(id)), 10))
		b.WriteByte('=')
		b.WriteString(id)
	}
	return b.String()
}

// Has says whether a source, or one that it is made of, is such a one.
func Has(s Source, is func(Source) bool) bool {
	var parts []Source
	switch s := s.(type) {
	case First:
		parts = s
	case All:
		parts = s
	default:
		return s != nil && is(s)
	}
	for _, p := range parts {
		if Has(p, is) {
			return true
		}
	}
	return false
}
