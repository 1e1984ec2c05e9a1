package identity

import (
	"fmt"
	"net/netip"
	"strings"
)

// AddressOptions say how the client's address is found. The zero options
// believe the socket and nothing else.
type AddressOptions struct {
	// Trusted are the proxies whose forwarding header is believed; none unless said.
	// IPv4-mapped ranges are taken as IPv4.
	Trusted []netip.Prefix
	// Header is the one forwarding header that is read, X-Forwarded-For unless said:
	// a list of addresses to which each proxy adds the one that it was asked by.
	// Forwarded is read as RFC 7239 has it.
	Header string
	// IPv6Prefix is how much of an IPv6 address is one client, 64 bits unless said:
	// a subscriber has all the addresses of at least a /64.
	IPv6Prefix int
}

// Address tells clients apart by address. The zero Address believes the socket
// alone.
//
// What a client may forge: nothing, as long as every trusted address is that of
// a proxy which appends the address it was asked by. Entries that a client put
// into the header stand to the left of those, and the walk from the right never
// reaches them. Whoever is trusted but is no such proxy can claim any address.
type Address struct {
	trusted peers
	header  string // canonical; empty is X-Forwarded-For
	prefix  int    // 0 is 64
}

// NewAddress checks the options.
func NewAddress(o AddressOptions) (*Address, error) {
	a := &Address{prefix: o.IPv6Prefix}
	if o.IPv6Prefix < 0 || o.IPv6Prefix > 128 {
		return nil, fmt.Errorf("an IPv6 prefix of %d bits: from 1 to 128, 64 unless there is a reason", o.IPv6Prefix)
	}
	var err error
	if a.trusted, err = newPeers(o.Trusted); err != nil {
		return nil, err
	}
	if o.Header != "" {
		if a.header, err = headerName(o.Header); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// HeaderName is the forwarding header that is read, in canonical form.
func (a *Address) HeaderName() string {
	if a.header == "" {
		return "X-Forwarded-For"
	}
	return a.header
}

// Trusts says whether an address, or a peer without one (a Unix socket), is that
// of a trusted proxy.
func (a *Address) Trusts(addr netip.Addr) bool {
	return !addr.IsValid() || a.trusted.contain(plain(addr))
}

// plain is the address unmapped and without zone.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// Client is the client's own address: the peer's unless that is trusted; then
// the header's lines are taken as one list and walked from the right past
// trusted entries, to the first that is not. What is not an address ends the
// walk at the trusted address to its right. Where all are trusted it is the
// leftmost. The zero Addr is the peer of a Unix socket that forwarded nothing.
//
// The walk costs time in the length of the header at most, allocates nothing,
// and is done once a request.
func (a *Address) Client(r *Request) netip.Addr {
	if r.clientOf != a {
		r.client, r.clientOf = a.walk(r), a
	}
	return r.client
}

func (a *Address) walk(r *Request) netip.Addr {
	last := plain(r.Peer)
	if !a.Trusts(last) {
		return last
	}
	lines := r.Header[a.HeaderName()]
	cut, parse := cutLast, ParseAddr
	if a.header == "Forwarded" {
		cut, parse = cutElement, parseElement
	}
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			var entry string
			rest, entry, more = cut(rest)
			addr, ok := parse(entry)
			if !ok {
				return last
			}
			last = addr
			if !a.trusted.contain(addr) {
				return last
			}
		}
	}
	return last
}

// cutLast cuts a list at its last comma.
func cutLast(list string) (rest, entry string, more bool) {
	comma := strings.LastIndexByte(list, ',')
	if comma < 0 {
		return "", list, false
	}
	return list[:comma], list[comma+1:], true
}

// Identity is "address:" and the address, or the prefix of an IPv6 one. All
// that comes through a Unix socket without a forwarding header is one client,
// "address:unix".
func (a *Address) Identity(r *Request) (string, bool) {
	return addressIdentity(a.Client(r), a.bits()), true
}

// For is the client with an address, or with the one from whose prefix IPv6 clients
// are told apart, as identities have it: 2001:db8:1:2::/64. All that a Unix socket brings is unix.
func (a *Address) For(value string) (Who, error) {
	addr, ok := ParseAddr(value)
	if !ok && value != "unix" {
		p, err := netip.ParsePrefix(value)
		if err != nil || !p.Addr().Is6() || p.Addr().Is4In6() || p.Bits() != a.bits() || p != p.Masked() {
			return Who{}, fmt.Errorf("%q is not a client's address: write 203.0.113.9 or 2001:db8::1, of which the first %d bits count", value, a.bits())
		}
		addr = p.Addr()
	}
	return Who{ID: addressIdentity(addr, a.bits())}, nil
}

// bits is the prefix of an IPv6 address that is one client.
func (a *Address) bits() int {
	if a.prefix == 0 {
		return 64
	}
	return a.prefix
}

func (a *Address) String() string { return "address" }

// Outer is a source by a shorter prefix of the IPv6 address, such as 48: who
// has that many addresses must not have as many budgets. A client with an IPv4
// address shows no such identity. Outers of the same address and bits are
// equal (==).
func (a *Address) Outer(bits int) (Source, error) {
	if bits < 1 || bits >= a.bits() {
		return nil, fmt.Errorf("an outer IPv6 prefix of %d bits: it is shorter than the client's own, and at least 1", bits)
	}
	return outer{a, bits}, nil
}

// outer is what a client may forge no more than its address.
type outer struct {
	of   *Address
	bits int
}

func (o outer) Identity(r *Request) (string, bool) {
	client := o.of.Client(r)
	if !client.Is6() {
		return "", false
	}
	return addressIdentity(client, o.bits), true
}

func (o outer) String() string { return fmt.Sprintf("address/%d", o.bits) }

// addressIdentity is the text of an address, IPv6 by its prefix: one allocation.
func addressIdentity(addr netip.Addr, bits int) string {
	const kind = "address:"
	var room [len(kind) + len("0000:0000:0000:0000:0000:0000:0000:0000/128")]byte
	text := append(room[:0], kind...)
	switch {
	case !addr.IsValid():
		text = append(text, "unix"...)
	case addr.Is4():
		text = addr.AppendTo(text)
	default:
		text = netip.PrefixFrom(addr, bits).Masked().AppendTo(text)
	}
	return string(text)
}
