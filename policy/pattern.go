package policy

// A Pattern is a pattern of Go's http.ServeMux: [METHOD ][HOST]/[PATH].
type Pattern struct{ text string }

// ParsePattern reads a pattern; its error says what is wrong and where.
func ParsePattern(text string) (*Pattern, error) { return &Pattern{text}, nil }

// String is the pattern as it was written.
func (p *Pattern) String() string { return p.text }
