package identity_test

import (
	"fmt"
	"net/netip"

	"github.com/comporta/comporta/identity"
)

// Behind a proxy at 10.0.0.5 the client is the one that the proxy was asked by,
// whatever it had written into the header itself.
func Example() {
	proxy, err := identity.ParsePrefix("10.0.0.5")
	if err != nil {
		panic(err)
	}
	address, err := identity.NewAddress(identity.AddressOptions{Trusted: []netip.Prefix{proxy}})
	if err != nil {
		panic(err)
	}
	request := identity.Request{
		Peer:   netip.MustParseAddr("10.0.0.5"),
		Header: map[string][]string{"X-Forwarded-For": {"9.9.9.9, [2001:db8:1:2::7]:51034"}},
	}
	fmt.Println(address.Client(&request))
	fmt.Println(address.Identity(&request))
	// Output:
	// 2001:db8:1:2::7
	// address:2001:db8:1:2::/64 true
}
