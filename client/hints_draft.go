package client

import (
	"encoding/base64"
	"time"

	"github.com/dunglas/httpsfv"
)

// draftHints reads RateLimit with RateLimit-Policy, as
// draft-ietf-httpapi-ratelimit-headers has had them: −07 (limit=100, remaining=50,
// reset=30), −08 to −11 ("default";r=50;t=30), and the form with a and w that
// −12 is expected to have. Some send them with Beta- before their names.
func draftHints(f fields, _ time.Time) []Hint {
	hints := draftHintsOf(f, "ratelimit")
	return append(hints, draftHintsOf(f, "beta-ratelimit")...)
}

func draftHintsOf(f fields, name string) (hints []Hint) {
	value, policy := f[name], f[name+"-policy"]
	if value == "" {
		return nil
	}
	list, err := httpsfv.UnmarshalList([]string{value})
	if err != nil || !named(list) {
		return dictionaryHint(value, policy, name)
	}
	policies := policiesOf(policy)
	for _, member := range list {
		h := Hint{Dialect: name, Unit: "requests", Limit: -1, Remaining: -1, Reset: -1, Window: -1}
		if !h.readState(member.(httpsfv.Item)) {
			continue
		}
		if p := find(policies, &h); p != nil {
			h.Limit, h.Window, h.Unit = p.Limit, p.Window, p.Unit
		}
		hints = append(hints, h)
	}
	return hints
}

// named says whether a list is of named items, some of which say what remains: a
// dictionary of −07 is a list of tokens to a reader of lists.
func named(list httpsfv.List) (says bool) {
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			return false
		}
		if _, ok := textOf(item.Value); !ok {
			return false
		}
		_, r := item.Params.Get("r")
		_, a := item.Params.Get("a")
		says = says || r || a
	}
	return says
}

// readState reads a member of RateLimit; false where it is to be ignored. Where r
// is said, a and w are of a server that speaks both forms, or no more than comments.
func (h *Hint) readState(item httpsfv.Item) (ok bool) {
	h.Policy, _ = textOf(item.Value)
	r, a, t, w := parameterOf(item.Params, "r"), parameterOf(item.Params, "a"), parameterOf(item.Params, "t"), parameterOf(item.Params, "w")
	if h.Partition, ok = partitionOf(item.Params); !ok {
		return false
	}
	switch {
	case r.there && (!r.valid || t.there && !t.valid || a.valid && a.n != r.n):
		return false
	case r.there:
		if !t.there && a.valid {
			t = w
		}
		h.Remaining = r.n
	case !a.valid || w.there && !w.valid:
		return false
	default:
		h.Remaining, t = a.n, w
	}
	if t.valid {
		h.Reset = seconds(t.n)
	}
	return true
}

// policiesOf reads RateLimit-Policy: what is known of a policy beside its state. A
// malformed member is ignored, and no other.
func policiesOf(value string) (policies []Hint) {
	if value == "" {
		return nil
	}
	list, err := httpsfv.UnmarshalList([]string{value})
	if err != nil {
		return nil
	}
	for _, member := range list {
		p := Hint{Window: -1, Unit: "requests"}
		if item, ok := member.(httpsfv.Item); ok && len(policies) < maxHints && p.readPolicy(item) {
			policies = append(policies, p)
		}
	}
	return policies
}

// find is the policy of a hint: that of its name and partition, else the first of its
// name; nil where there is none.
func find(policies []Hint, h *Hint) (found *Hint) {
	for i := range policies {
		p := &policies[i]
		switch {
		case p.Policy != h.Policy:
		case p.Partition == h.Partition:
			return p
		case found == nil:
			found = p
		}
	}
	return found
}

// readPolicy reads a member of RateLimit-Policy; false where it is to be ignored.
func (h *Hint) readPolicy(item httpsfv.Item) (ok bool) {
	if h.Policy, ok = textOf(item.Value); !ok {
		return false
	}
	if h.Partition, ok = partitionOf(item.Params); !ok {
		return false
	}
	q, w := parameterOf(item.Params, "q"), parameterOf(item.Params, "w")
	if !q.valid || w.there && (!w.valid || w.n == 0) {
		return false
	}
	h.Limit = q.n
	if w.there {
		h.Window = seconds(w.n)
	}
	if unit, there := item.Params.Get("qu"); there {
		name, ok := textOf(unit)
		if !ok {
			return false
		}
		if name != "request" && name != "" { // "request" is in the draft's own table of units
			h.Unit = name
		}
	}
	return true
}

// dictionaryHint reads the form of −07, in which RateLimit-Policy is that of −06.
func dictionaryHint(value, policy, name string) []Hint {
	d, err := httpsfv.UnmarshalDictionary([]string{value})
	if err != nil {
		return nil
	}
	h := Hint{Dialect: name + "-dictionary", Unit: "requests", Limit: -1, Remaining: -1, Reset: -1, Window: -1}
	for _, said := range []struct {
		key string
		to  func(int64)
	}{
		{"limit", func(n int64) { h.Limit = n }},
		{"remaining", func(n int64) { h.Remaining = n }},
		{"reset", func(n int64) { h.Reset = seconds(n) }},
	} {
		member, there := d.Get(said.key)
		if !there {
			continue
		}
		item, _ := member.(httpsfv.Item)
		n, ok := item.Value.(int64)
		if !ok || n < 0 {
			return nil
		}
		said.to(n)
	}
	if h.Limit >= 0 {
		h.Window, _ = windowOf(h.Limit, policy)
	}
	return []Hint{h}
}

// A parameter is one that ought to be an Integer, 0 or more.
type parameter struct {
	n            int64
	there, valid bool
}

func parameterOf(p *httpsfv.Params, key string) parameter {
	v, there := p.Get(key)
	n, ok := v.(int64)
	return parameter{n, there, ok && n >= 0}
}

// textOf is a String, or the Token that some send for one.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case httpsfv.Token:
		return string(v), true
	}
	return "", false
}

// partitionOf is the partition key as it is sent; false where it is none.
func partitionOf(p *httpsfv.Params) (string, bool) {
	v, there := p.Get("pk")
	key, ok := v.([]byte)
	return base64.StdEncoding.EncodeToString(key), ok || !there
}
