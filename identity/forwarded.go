package identity

import (
	"net/netip"
	"strings"
)

// cutElement cuts a line of the Forwarded header (RFC 7239) at the last comma that
// no quotes hold. It reads from the right: what a client wrote, an open quote above
// all, stands to the left of what proxies add and cannot reach it.
func cutElement(line string) (rest, element string, more bool) {
	quoted := false
	for i := len(line) - 1; i >= 0; i-- {
		switch line[i] {
		case '"':
			before := strings.TrimRight(line[:i], `\`)
			if (i-len(before))%2 == 0 { // else it is \" within quotes
				quoted = !quoted
			}
			i = len(before)
		case ',':
			if !quoted {
				return line[:i], line[i+1:], true
			}
		}
	}
	return "", line, false
}

// parseElement is the address in an element of the Forwarded header: that of the
// parameter for, which is there once, in an element that is well-formed. What hides
// who it is (unknown, or a name that begins with an underscore) is no address.
// Addresses with a port, which need quotes, are read without them too.
func parseElement(element string) (netip.Addr, bool) {
	node, named := "", false
	for {
		if element = strings.TrimLeft(element, " \t;"); element == "" {
			break
		}
		name, rest, _ := strings.Cut(element, "=")
		value, rest, ok := cutValue(rest)
		rest = strings.TrimLeft(rest, " \t")
		if !ok || !isToken(name) || rest != "" && rest[0] != ';' {
			return netip.Addr{}, false
		}
		if strings.EqualFold(name, "for") {
			if named {
				return netip.Addr{}, false
			}
			node, named = value, true
		}
		element = rest
	}
	if strings.ContainsAny(node, " \t") {
		return netip.Addr{}, false
	}
	// A port may hide too: 203.0.113.7:_x.
	if host, port, hidden := strings.Cut(node, ":_"); hidden && isToken(port) {
		node = host
	}
	return ParseAddr(node)
}

// cutValue takes a parameter's value from the front: what quotes hold, as it is
// there, or what ends with a blank or a semicolon.
func cutValue(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, "; \t\"")
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], end > 0
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[1:i], text[i+1:], true
		}
	}
	return "", "", false
}
