package comporta

import "sync/atomic"

// A succession is what rules share that follow one another under a limit, as its
// numbers change while a program runs.
type succession struct{ last atomic.Pointer[Rule] }

// Follow puts r in the place of another rule of the same limit: from now on stores
// decide by r what they are asked to decide by that one. So what is under way by old
// numbers, and is settled by them, brings no key back under them. It is safe for
// concurrent use with all but itself.
func (r *Rule) Follow(before *Rule) {
	if r == before {
		return
	}
	s := before.succession.Load()
	if s == nil {
		s = new(succession)
	}
	if r.succession.Load() == nil {
		r.succession.Store(s)
	}
	s.last.Store(r)
	before.succession.Store(s)
}

// Current is the rule that is in r's place by now: r, unless one followed it.
func (r *Rule) Current() *Rule {
	for {
		s := r.succession.Load()
		if s == nil {
			return r
		}
		last := s.last.Load()
		if last == r {
			return r
		}
		r = last
	}
}

// CurrentTakes is the takes by the rules that are in their rules' places by now: the
// same slice where none was followed.
func CurrentTakes(takes []Take) []Take {
	for i := range takes {
		if takes[i].Rule.Current() == takes[i].Rule {
			continue
		}
		current := append([]Take(nil), takes...)
		for j := range current {
			current[j].Rule = current[j].Rule.Current()
		}
		return current
	}
	return takes
}
