package config

import (
	"fmt"
	"net/netip"
	"net/textproto"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// lists reads who passes all limits, and who is refused.
func (r *reader) lists(allow, deny *node) {
	p := r.config.Policy
	p.Allow = r.list(allow, "allow")
	p.Deny = r.list(deny, "deny")
	for i, one := range p.Allow {
		for _, other := range p.Deny {
			if within(one, other) {
				r.warn(items(allow)[i], "W-ALLOW-DENIED", "who is allowed here is denied in deny, and refused", "remove one of the two")
				break
			}
		}
	}
}

// list reads one of them; nil is none.
func (r *reader) list(n *node, what string) []policy.Listed {
	if n == nil {
		return nil
	}
	entries := items(n)
	if what == "allow" {
		r.config.said.allow = entries
	} else {
		r.config.said.deny = entries
	}
	if n.kind == nothing {
		r.wrongKind(n, what, "a list of networks and clients: [192.0.2.0/24, {api_key: acme}]")
		return nil
	}
	out := make([]policy.Listed, len(entries)) // namings point into it
	lines := map[string]int{}
	for i, item := range entries {
		if !r.listed(item, what, &out[i]) {
			continue
		}
		said := out[i].Network.String() + out[i].Who.ID
		if line, double := lines[said]; double {
			r.fault(item, fmt.Sprintf("%s: the same is in line %d", what, line), "remove one")
		}
		lines[said] = item.line
	}
	return out
}

// items are those of a list, or the one without brackets.
func items(n *node) []*node {
	if n.kind == list {
		return n.items
	}
	return []*node{n}
}

// listed reads one entry: a network, or a client that proves who it is.
func (r *reader) listed(n *node, what string, to *policy.Listed) bool {
	if n.kind != mapping {
		return r.network(n, what, to)
	}
	if e, ok := n.entry("address"); ok && len(n.entries) == 1 {
		return r.network(e.value, what, to)
	}
	for _, kind := range []string{"claimed", "path"} {
		if e, ok := n.entry(kind); ok {
			r.fault(e.key, fmt.Sprintf("%s: {%s: …} says nothing of who is asking", what, kind), "name networks, API keys and users")
			return false
		}
	}
	if e, ok := n.entry("header"); ok && !r.known(e.value) {
		if from, _ := n.entry("from"); r.header(e.value, from.value) == nil {
			return false
		}
	}
	if !r.who(n, to) {
		return false
	}
	if h, ok := to.Source.(identity.Header); ok && what == "allow" {
		r.fault(n, fmt.Sprintf("allow: anybody can send the header %s, and would pass all limits", h.Name()), "write from: and the proxies that set it")
		return false
	}
	return true
}

// known says whether a limit or a list has spoken of a header.
func (r *reader) known(header *node) bool {
	_, ok := r.config.sources["header:"+textproto.CanonicalMIMEHeaderKey(header.text)]
	return ok
}

// network reads a range of addresses, or one.
func (r *reader) network(n *node, what string, to *policy.Listed) bool {
	p, ok := r.prefix(n, what, "192.0.2.0/24")
	if ok && p.Bits() == 0 {
		r.warn(n, "W-LIST-ALL", fmt.Sprintf("%s: %v is every client", what, p), "name the networks that you mean")
	}
	*to = policy.Listed{Network: p}
	return ok
}

// within says whether all that one names are named by the other.
func within(one, other policy.Listed) bool {
	if other.Network.IsValid() {
		return one.Network.IsValid() && other.Network.Overlaps(one.Network) && other.Network.Bits() <= one.Network.Bits()
	}
	return other.Source != nil && one.Who.ID == other.Who.ID
}

// prefix reads a range of addresses, or one.
func (r *reader) prefix(n *node, what, example string) (netip.Prefix, bool) {
	said, ok := r.text(n, what, example)
	if !ok {
		return netip.Prefix{}, false
	}
	p, err := parsePrefix(said)
	if err != nil {
		wrong, hint := splitHint(err.Error(), "write it like "+example)
		r.fault(n, what+": "+wrong, hint)
		return p, false
	}
	return p, true
}

// parsePrefix is identity.ParsePrefix that wants no bits past the prefix's length:
// nobody knows which of the two is meant.
func parsePrefix(said string) (netip.Prefix, error) {
	p, err := identity.ParsePrefix(said)
	if err != nil {
		return p, err
	}
	if written, err := netip.ParsePrefix(said); err == nil && written != written.Masked() {
		return p, fmt.Errorf("%s has bits set past its prefix: write %v for the range, or %v for the one address", said, p, written.Addr().Unmap())
	}
	return p, nil
}
