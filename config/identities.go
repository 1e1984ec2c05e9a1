package config

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

const (
	maxTimes     = 1_000_000
	defaultBits  = 64
	defaultOuter = 48
	defaultTimes = 16
	maxClaimed   = 16 << 20
)

// addresses is what a file says of how a client's address is found.
type addresses struct {
	trusted []netip.Prefix
	bits    int
}

// identities reads how clients are told apart; nil is a file that says nothing.
func (r *reader) identities(n *node) {
	a := &r.config.addresses
	*a = addresses{bits: defaultBits}
	var all, words map[string]entry
	if n != nil {
		all = r.mapping(n, "identities", identitiesWords)
		if e, ok := all["address"]; ok {
			words = r.mapping(e.value, "identities.address", addressWords)
		}
	}
	options := identity.AddressOptions{}
	if e, ok := words["trusted_proxies"]; ok {
		a.trusted = r.trusted(e.value, "trusted_proxies")
		options.Trusted = a.trusted
	}
	if e, ok := words["ipv6_prefix"]; ok {
		if v, ok := r.whole(e.value, "ipv6_prefix", 1, 128); ok {
			a.bits = int(v)
		}
	}
	options.IPv6Prefix = a.bits
	if e, ok := words["header"]; ok {
		if said, ok := r.text(e.value, "header", "X-Forwarded-For"); ok {
			if _, err := identity.NewAddress(identity.AddressOptions{Header: said}); err != nil {
				wrong, hint := splitHint(err.Error(), "write it like X-Forwarded-For")
				r.fault(e.value, wrong, hint)
			} else {
				options.Header = said
			}
		}
		if len(a.trusted) == 0 {
			r.warn(e.value, "W-HEADER-UNREAD", "this header is never read: no proxy is trusted to send it", "name your proxies in trusted_proxies, or leave header out")
		}
	}
	source, err := identity.NewAddress(options)
	if err != nil { // each option was checked by itself, so this is one that they make together
		r.fault(n, err.Error(), "change one of the words of identities.address")
		source = new(identity.Address)
	}
	r.config.Policy.Address = source
	r.config.Policy.IPv6Outer = r.outer(words, a.bits)
	if e, ok := all["claimed"]; ok {
		r.claimedBounds(e.value)
	}
	if e, ok := all["api_key"]; ok {
		r.apiKey(e.value)
	}
	if e, ok := all["user"]; ok {
		r.user(e.value)
	}
}

// trusted reads ranges of addresses. One that is wrong is an error for the whole
// file: a list without it would believe fewer proxies, or none, in silence.
func (r *reader) trusted(n *node, what string) (out []netip.Prefix) {
	for _, item := range r.several(n, what) {
		if p, ok := r.prefix(item, what, "10.0.0.0/8"); ok {
			r.warnTrust(item, p)
			out = append(out, p)
		}
	}
	return out
}

// warnTrust warns of ranges in which anybody may be.
func (r *reader) warnTrust(n *node, p netip.Prefix) {
	switch {
	case p.Bits() == 0:
		r.warn(n, "W-TRUST-ALL", fmt.Sprintf("every client is trusted to say who it is (%v): it can be another one, with a new budget, for each request", p),
			"trust only the addresses of your own proxies")
	case broad(p):
		r.warn(n, "W-TRUST-BROAD", fmt.Sprintf("%v is a very wide range to trust: whoever has an address in it can be any client that it likes", p),
			"trust only the addresses of your own proxies")
	}
}

// private are the ranges that the internet does not route, which are trusted in whole often and rightly.
var private = [...]netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"),
}

// broad says whether a range is wider than any that a provider of proxies
// publishes: under /10 of IPv4 or /20 of IPv6, private ranges aside.
func broad(p netip.Prefix) bool {
	for _, own := range private {
		if own.Bits() <= p.Bits() && own.Contains(p.Addr()) {
			return false
		}
	}
	return p.Addr().Is4() && p.Bits() < 10 || p.Addr().Is6() && p.Bits() < 20
}

// outer reads the wider IPv6 range beside each limit per address. Unless said it
// is 16 times a limit by /48, where that is wider than a client.
func (r *reader) outer(words map[string]entry, bits int) policy.IPv6Outer {
	o := policy.IPv6Outer{Prefix: defaultOuter, Times: defaultTimes}
	e, given := words["ipv6_outer"]
	if !given {
		o.Off = bits <= defaultOuter
		return o
	}
	at := e.value
	if at.kind == text {
		r.choice(at, "ipv6_outer", "off")
		o.Off = true
		return o
	}
	inner := r.mapping(at, "ipv6_outer", outerWords)
	if e, ok := inner["times"]; ok {
		v, _ := r.whole(e.value, "times", 1, maxTimes)
		o.Times = int(v)
	}
	if e, ok := inner["prefix"]; ok {
		at = e.value
		v, ok := r.whole(e.value, "prefix", 1, 127)
		if !ok {
			return o
		}
		o.Prefix = int(v)
	}
	if o.Prefix >= bits {
		r.fault(at, fmt.Sprintf("ipv6_outer: a prefix of %d is not wider than ipv6_prefix, %d", o.Prefix, bits), "write a smaller prefix, or ipv6_outer: off")
	}
	return o
}

func defaultClaimed() policy.Claimed {
	return policy.Claimed{MaxBody: identity.MaxBody, NewKeys: comporta.Limit{Limit: 100, Window: time.Minute, Burst: 300}}
}

// claimedBounds reads what is done at most for identities that nobody proves.
func (r *reader) claimedBounds(n *node) {
	c := &r.config.Policy.Claimed
	words := r.mapping(n, "identities.claimed", claimedWords)
	if e, ok := words["max_body"]; ok {
		v, _ := r.size(e.value, "max_body", maxClaimed)
		c.MaxBody = int(v)
	}
	if e, ok := words["new_keys"]; ok {
		before := len(r.problems)
		c.NewKeys, c.All = r.parsed(e.value, "new_keys", "100/min burst 300", comporta.ParseLimit), true
		if len(r.problems) > before {
			return
		}
		if _, err := c.NewKeys.Compile(); err != nil {
			r.limitError(err, nil, e.value, "new_keys")
		}
	}
}
