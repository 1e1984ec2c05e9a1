package policy

// Covers says whether p matches every request that o matches.
func (p *Pattern) Covers(o *Pattern) bool {
	if p.method != "" && p.method != o.method && !(p.method == "GET" && o.method == "HEAD") || p.host != "" && p.host != o.host {
		return false
	}
	for i := range p.segments {
		if i == len(o.segments) {
			return false
		}
		mine, theirs := &p.segments[i], &o.segments[i]
		switch mine.kind {
		case tail:
			return true
		case wildcard:
			if theirs.kind > wildcard {
				return false
			}
		default: // a literal, or the end
			if *theirs != *mine {
				return false
			}
		}
	}
	return len(p.segments) == len(o.segments)
}
