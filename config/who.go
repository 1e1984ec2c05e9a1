package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/textproto"
	"strings"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// whoForms is how a file names a client.
const whoForms = "{api_key: acme}, {user: alice}, {address: 203.0.113.9} or {header: X-Product, value: p1}"

// A naming is a client that a file names by its value. Its identity hangs on the
// secret, and is known with it.
type naming struct {
	to    *policy.Listed
	value string
	at    *node
}

// who reads a client into to, which stays where it is: its identity is put there
// when the secret is known.
func (r *reader) who(n *node, to *policy.Listed) bool {
	if n.kind != mapping || len(n.entries) == 0 {
		r.wrongKind(n, "who", whoForms)
		return false
	}
	words := r.mapping(n, "who", whoWords)
	kind := r.exactly(n, words, "who", "api_key", "user", "address", "header", "path", "claimed")
	if kind == "" || !r.belongs(words, kind) {
		return false
	}
	at, name := words[kind].value, ""
	value, given := words["value"]
	switch simple := kind == "api_key" || kind == "user" || kind == "address"; {
	case simple && given:
		r.fault(value.key, fmt.Sprintf("value is for header, path and claimed: {%s: …} has its own", kind), "leave it out")
		return false
	case !simple && !given:
		r.fault(n, fmt.Sprintf("who names no value of the %s", kind), fmt.Sprintf("write {%s: %s, value: …}", kind, at.text))
		return false
	case !simple:
		var ok bool
		if name, ok = r.text(at, kind, "X-Product"); !ok {
			return false
		}
		at = value.value
	}
	said, ok := r.text(at, "who", "acme")
	if !ok {
		return false
	}
	if e, ok := words["from"]; ok && r.header(words["header"].value, e.value) == nil {
		return false
	}
	if kind == "address" {
		said = r.config.oneClient(said)
	}
	s, listed, err := r.config.client(kind, name, said)
	if s != nil {
		if s.draft == nil { // what sets it up is wrong, and said to be
			return false
		}
		listed.Source = s.Source
		listed.Who, err = nameOf(s.draft, said)
		r.config.namings = append(r.config.namings, naming{to, said, at})
	}
	if err != nil {
		wrong, hint := splitHint(err.Error(), "write it as the limit's identity has it")
		r.fault(at, "who: "+wrong, hint)
		return false
	}
	*to = listed
	return true
}

// Who is the client, or the network, that a text names: api_key:acme, user:alice,
// address:203.0.113.9, header:X-Product=p1, path:id=5, claimed:username=alice or
// everyone. The error says what is wrong with the text. It needs the secret: see
// LoadSecret.
func (c *Config) Who(text string) (policy.Listed, error) {
	kind, value, _ := strings.Cut(text, ":")
	name := ""
	switch kind {
	case "header", "path", "claimed":
		var found bool
		if name, value, found = strings.Cut(value, "="); !found {
			return policy.Listed{}, fmt.Errorf("%s: no value: write %s:NAME=VALUE", kind, kind)
		}
	case "address":
		value = c.oneClient(value)
	}
	s, listed, err := c.client(kind, name, value)
	if err != nil || s == nil {
		return listed, err
	}
	who, err := nameOf(s.Source, value)
	return policy.Listed{Source: s.Source, Who: who}, err
}

// oneClient is the address of a network that is one client, and else what it is given.
func (c *Config) oneClient(address string) string {
	if p, err := identity.ParsePrefix(address); err == nil && (p.IsSingleIP() || p.Addr().Is6() && p.Bits() == c.addresses.bits) {
		return p.Addr().String()
	}
	return address
}

// Stored is the client of a stored identity, which is how rankings and logs show
// what clients sent: header:x-product:…, path:id:…, claimed:username:…, each with a
// hash. It reports whether the text is one of these.
func (c *Config) Stored(text string) (policy.Listed, bool) {
	kind, _, _ := strings.Cut(text, ":")
	end := strings.LastIndexByte(text, ':')
	if kind != "header" && kind != "path" && kind != "claimed" || end <= len(kind) {
		return policy.Listed{}, false
	}
	s, _, err := c.client(kind, text[len(kind)+1:end], "")
	if err != nil {
		return policy.Listed{}, false
	}
	alike, err := nameOf(s.Source, "x")
	if err != nil || len(alike.ID) != len(text) || alike.ID[:end+1] != text[:end+1] {
		return policy.Listed{}, false
	}
	return policy.Listed{Source: s.Source, Who: identity.Who{ID: text}}, true
}

// client is the source by which clients of a kind are told apart; nil for a
// network, which is told by itself.
func (c *Config) client(kind, name, value string) (*source, policy.Listed, error) {
	called := kind
	switch kind {
	case "address":
		if !strings.Contains(value, "/") {
			return &source{Source: c.Policy.Address, draft: c.Policy.Address}, policy.Listed{}, nil
		}
		p, err := parsePrefix(value)
		if bits := c.addresses.bits; err == nil && p.Addr().Is6() && p.Bits() > bits {
			err = fmt.Errorf("%s is only a part of one client, whose first %d bits count: write %v", value, bits, netip.PrefixFrom(p.Addr(), bits).Masked())
		}
		return nil, policy.Listed{Network: p}, err
	case "everyone":
		return &source{Source: identity.Everyone{}, draft: identity.Everyone{}}, policy.Listed{}, nil
	case "header":
		name = textproto.CanonicalMIMEHeaderKey(name)
		called += ":" + name
	case "path", "claimed":
		called += ":" + name
	case "api_key", "user":
	default:
		return nil, policy.Listed{}, errors.New("nobody is called so: write api_key:ID, user:NAME, address:ADDRESS, header:NAME=VALUE, path:NAME=VALUE, claimed:FIELD=VALUE or everyone")
	}
	if s, ok := c.sources[called]; ok {
		return s, policy.Listed{}, nil
	}
	if setup := sourceSetups[called]; setup != "" {
		return nil, policy.Listed{}, fmt.Errorf("%s is not set up in identities: %s", called, setup)
	}
	return nil, policy.Listed{}, fmt.Errorf("no limit counts per {%s: %s}: write per: {%[1]s: %s} into one", kind, name)
}

// nameOf is the client of that value.
func nameOf(s identity.Source, value string) (identity.Who, error) {
	named, ok := s.(identity.Named)
	if !ok {
		return identity.Who{}, fmt.Errorf("clients per %s have no names", s)
	}
	return named.For(value)
}

// name gives the clients that the file names their identities, now that there is
// a secret.
func (c *Config) name() error {
	for _, n := range c.namings {
		who, err := nameOf(n.to.Source, n.value)
		if err != nil {
			return err
		}
		n.to.Who = who
	}
	return nil
}
