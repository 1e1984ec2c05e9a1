package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// warnWords warns of words of a limit that do nothing beside its others.
func (r *reader) warnWords(d detail) {
	l := d.limit
	var why string
	switch {
	case l.Mode == policy.Shadow:
		why = "it is in shadow"
	case l.OnLimit != policy.Refuse:
		why = "it refuses nobody"
	case d.unlimited(r.config.Policy):
		why = "it is unlimited for all"
	}
	words := []string{"message", "help"}
	if l.Mode == policy.Shadow {
		words = append(words, "on_limit")
	}
	if why != "" {
		r.unused(d, why, words...)
	}
	if neverMissing(l.Per) {
		r.unused(d, fmt.Sprintf("every request shows %s", l.Per), "on_missing")
	}
	if l.Limit.Charge != comporta.Attempts && !lockable(l) {
		r.unused(d, "nobody can be locked out by it", "lockout")
	}
}

// unused warns of those words that a limit has.
func (r *reader) unused(d detail, why string, words ...string) {
	words = slices.DeleteFunc(words, func(word string) bool { return d.words[word].key == nil })
	if len(words) == 0 {
		return
	}
	do := "does"
	if len(words) > 1 {
		do = "do"
	}
	r.warn(d.words[words[0]].key, "W-WORD-UNUSED", fmt.Sprintf("%s of limit %q %s nothing: %s", strings.Join(words, ", "), d.limit.Name, do, why), "leave out what does nothing")
}

// unlimited says whether no client has numbers under a limit.
func (d *detail) unlimited(p *policy.Policy) bool {
	if !d.limit.Limit.Unlimited {
		return false
	}
	for _, plan := range p.Plans {
		if said, ok := plan[d.limit.Name]; ok && !said.Unlimited {
			return false
		}
	}
	return !slices.ContainsFunc(p.Overrides, func(o *policy.Override) bool {
		said, ok := o.Limits[d.limit.Name]
		return ok && !said.Unlimited
	})
}

// warnLockout warns of a limit by which a stranger can keep a client out: one that
// counts by what anybody can say, and by nothing else. That a header may hold a
// secret that strangers cannot say, and that a part of the path belongs to nobody in
// most APIs, is why this is no error, as it is for a claimed field.
func (r *reader) warnLockout(d detail) {
	l := d.limit
	if _, accepted := d.words["lockout"]; accepted || !lockable(l) {
		return
	}
	r.warn(d.at.per, "W-LOCKOUT", fmt.Sprintf("whoever can name a client under limit %q can use up its budget, and so keep it out", l.Name),
		"count it together with the address, {all: [{…}, address]}; or on_limit: mark; or lockout: accepted, if that is meant")
}

// lockable says whether a limit refuses those whom a stranger named.
func lockable(l *policy.Limit) bool {
	if l.OnLimit != policy.Refuse || l.Mode == policy.Shadow || l.Limit.Unlimited {
		return false
	}
	options, ok := l.Per.(identity.First)
	if !ok {
		options = identity.First{l.Per}
	}
	return slices.ContainsFunc(options, func(s identity.Source) bool {
		switch s.(type) {
		case *identity.Claimed:
			return true
		case identity.Header, identity.Path:
			return l.Limit.Charge == comporta.Attempts
		}
		return false
	})
}
