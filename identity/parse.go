package identity

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// ParseAddr reads an address as sockets and forwarding headers spell it:
// 203.0.113.7, 203.0.113.7:51034, 2001:db8::7, [2001:db8::7], [2001:db8::7]:443,
// fe80::1%eth0, ::ffff:203.0.113.7. Port, brackets and zone are dropped and an
// IPv4-mapped address is the IPv4 address, so that no spelling is another
// client. It reports false for anything else, and for 0.0.0.0 and ::, which are
// nobody's address. It allocates nothing for an address.
func ParseAddr(text string) (netip.Addr, bool) {
	if addr, ok := parseQuad(text); ok {
		return addr, true
	}
	host, ok := cutPort(strings.Trim(text, " \t"))
	if !ok {
		return netip.Addr{}, false
	}
	host, _, zoned := strings.Cut(host, "%") // before parsing: a zone is kept for ever in a table
	if len(host) > len("0000:0000:0000:0000:0000:ffff:255.255.255.255") {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || zoned && addr.Is4() {
		return netip.Addr{}, false
	}
	addr = addr.Unmap()
	return addr, !addr.IsUnspecified()
}

// parseQuad is ParseAddr for what nearly all clients have, 203.0.113.7 or
// 203.0.113.7:51034, in one walk along the text. What it does not read may still
// be an address.
func parseQuad(text string) (netip.Addr, bool) {
	var quad [4]byte
	at := 0 // of the byte being read
	n, digits := uint(0), 0
	for i := range len(text) {
		switch digit := text[i] - '0'; {
		case digit <= 9:
			n = n*10 + uint(digit)
			if digits++; n > 255 || digits > 1 && n < 10 {
				return netip.Addr{}, false
			}
			continue
		case digits == 0 || text[i] != '.' && text[i] != ':' || (text[i] == ':') != (at == 3):
			return netip.Addr{}, false
		}
		quad[at] = byte(n)
		if at++; at == 4 {
			return netip.AddrFrom4(quad), isPort(text[i+1:]) && quad != [4]byte{}
		}
		n, digits = 0, 0
	}
	quad[3] = byte(n)
	return netip.AddrFrom4(quad), at == 3 && digits > 0 && quad != [4]byte{}
}

// cutPort takes off brackets and port; it reports false for a port that is none
// and for brackets around anything but IPv6.
func cutPort(s string) (host string, ok bool) {
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 || !strings.Contains(s[:end], ":") {
			return "", false
		}
		rest := s[end+1:]
		return s[1:end], rest == "" || rest[0] == ':' && isPort(rest[1:])
	}
	colon := strings.IndexByte(s, ':')
	if colon < 0 || strings.IndexByte(s[colon+1:], ':') >= 0 {
		return s, true
	}
	return s[:colon], isPort(s[colon+1:])
}

func isPort(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= 5
}

// Host is the Host field of a request without its port.
func Host(field string) string {
	colon := strings.LastIndexByte(field, ':')
	if colon < 0 || strings.IndexByte(field[colon:], ']') >= 0 {
		return field
	}
	return field[:colon]
}

// IsLoopback says whether a URL's host name is this machine itself: what goes there
// is not seen on its way.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// ParsePrefix reads a range of trusted addresses: 10.0.0.0/8, 2001:db8::/32, or
// one address, 192.0.2.1. A range of IPv4-mapped addresses is the IPv4 range:
// ::ffff:10.0.0.0/104 is 10.0.0.0/8. Bits past the prefix are dropped. The error
// says what is wrong and what to write.
func ParsePrefix(text string) (netip.Prefix, error) {
	if text == "" {
		return netip.Prefix{}, errors.New("an empty address range: write one as 10.0.0.0/8, or an address")
	}
	host, bits, ranged := strings.Cut(text, "/")
	addr, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%q is not an address range: write one as 10.0.0.0/8 or 2001:db8::/32, or an address; host names are not looked up", text)
	case addr.Zone() != "":
		return netip.Prefix{}, fmt.Errorf("%q has a zone: write the address without %%%s", text, addr.Zone())
	case !ranged:
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q: /%s is not a prefix length: from /0 to /%d for this address", text, bits, addr.BitLen())
	}
	return unmapPrefix(p)
}

// unmapPrefix is the range without host bits, as IPv4 where it is of mapped addresses.
func unmapPrefix(p netip.Prefix) (netip.Prefix, error) {
	const mapped = 128 - 32
	switch {
	case !p.IsValid():
		return netip.Prefix{}, errors.New("an address range without an address")
	case !p.Addr().Is4In6():
		return p.Masked(), nil
	case p.Bits() < mapped:
		return netip.Prefix{}, fmt.Errorf("%v reaches beyond the IPv4-mapped addresses: write the IPv4 range, such as 0.0.0.0/0", p)
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped).Masked(), nil
}

// peers are the ranges of addresses whose word is taken.
type peers []netip.Prefix

// newPeers takes ranges of IPv4-mapped addresses as IPv4.
func newPeers(ranges []netip.Prefix) (peers, error) {
	var all peers
	for _, p := range ranges {
		p, err := unmapPrefix(p)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// contain says whether an unmapped address without zone is one of them.
func (all peers) contain(addr netip.Addr) bool {
	for i := range all {
		if all[i].Contains(addr) {
			return true
		}
	}
	return false
}
