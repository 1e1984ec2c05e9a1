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
	value := f[name]
	if value == "" {
		return nil
	}
	list, err := httpsfv.UnmarshalList([]string{value})
	if err != nil || !named(list) {
		return dictionaryHint(value, name)
	}
	policies := policiesOf(f[name+"-policy"])
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			continue
		}
		h := Hint{Dialect: name, Unit: "requests", Limit: -1, Remaining: -1, Reset: -1, Window: -1}
		if h.Policy, ok = nameOf(item); !ok {
			continue
		}
		remaining, ok := integer(item.Params, "r")
		reset, resetKey := int64(-1), "t"
		if !ok {
			remaining, ok = integer(item.Params, "a")
			resetKey = "w"
		}
		if !ok || remaining < 0 {
			continue
		}
		h.Remaining = remaining
		if _, there := item.Params.Get(resetKey); there {
			if reset, ok = integer(item.Params, resetKey); !ok || reset < 0 {
				continue
			}
			h.Reset = seconds(float64(reset))
		}
		h.Partition = partitionOf(item.Params)
		if p, ok := policies[h.Policy]; ok {
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
		if _, ok := nameOf(item); !ok {
			return false
		}
		_, r := item.Params.Get("r")
		_, a := item.Params.Get("a")
		says = says || r || a
	}
	return says
}

// nameOf is an item's name: a String, or the Token that some send for one.
func nameOf(item httpsfv.Item) (string, bool) {
	switch v := item.Value.(type) {
	case string:
		return v, true
	case httpsfv.Token:
		return string(v), true
	}
	return "", false
}

// policiesOf reads RateLimit-Policy: what is known of a policy beside its state.
func policiesOf(value string) map[string]Hint {
	list, err := httpsfv.UnmarshalList([]string{value})
	if value == "" || err != nil {
		return nil
	}
	policies := map[string]Hint{}
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			continue
		}
		name, ok := nameOf(item)
		q, ok2 := integer(item.Params, "q")
		if !ok || !ok2 || q < 0 {
			continue
		}
		p := Hint{Limit: q, Window: -1, Unit: "requests"}
		if w, ok := integer(item.Params, "w"); ok && w > 0 {
			p.Window = seconds(float64(w))
		}
		if unit, there := item.Params.Get("qu"); there {
			text, ok := unit.(string)
			if !ok {
				continue
			}
			if text != "request" { // as the draft's own table of units has it
				p.Unit = text
			}
		}
		policies[name] = p
	}
	return policies
}

// dictionaryHint reads the form of −07.
func dictionaryHint(value, name string) []Hint {
	d, err := httpsfv.UnmarshalDictionary([]string{value})
	if err != nil {
		return nil
	}
	h := Hint{Dialect: name + "-dictionary", Unit: "requests", Limit: -1, Remaining: -1, Reset: -1, Window: -1}
	for key, to := range map[string]func(int64){
		"limit":     func(n int64) { h.Limit = n },
		"remaining": func(n int64) { h.Remaining = n },
		"reset":     func(n int64) { h.Reset = seconds(float64(n)) },
	} {
		member, there := d.Get(key)
		if !there {
			continue
		}
		item, _ := member.(httpsfv.Item)
		n, ok := item.Value.(int64)
		if !ok || n < 0 {
			return nil
		}
		to(n)
	}
	return []Hint{h}
}

func integer(p *httpsfv.Params, key string) (int64, bool) {
	v, ok := p.Get(key)
	if !ok {
		return 0, false
	}
	n, ok := v.(int64)
	return n, ok
}

// partitionOf is the partition key as it is sent.
func partitionOf(p *httpsfv.Params) string {
	v, _ := p.Get("pk")
	key, _ := v.([]byte)
	return base64.StdEncoding.EncodeToString(key)
}
