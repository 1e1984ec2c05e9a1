package identity_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/comporta/comporta/identity"
)

// A name is found in a form and in JSON alike, and is one client however it is
// spelled. What two readers would read differently is refused.
func ExampleClaimed() {
	username, err := identity.NewClaimed("username", new(identity.Secret), identity.ClaimedOptions{})
	if err != nil {
		panic(err)
	}
	login := func(contentType, body string) (identity.Who, error) {
		who, _, err := username.Prove(context.Background(), &identity.Request{
			Header: map[string][]string{"Content-Type": {contentType}},
			Body: func(_ context.Context, most int) ([]byte, bool, error) {
				return []byte(body[:min(most, len(body))]), len(body) <= most, nil
			},
		})
		return who, err
	}
	form, _ := login("application/x-www-form-urlencoded", "username=+ALICE&password=x")
	json, _ := login("application/json", `{"username":"alice","password":"x"}`)
	fmt.Println(form == json)
	_, err = login("application/json", `{"username":"alice","Username":"bob"}`)
	fmt.Println(err)
	// Output:
	// true
	// 400: A field that may be there once is there twice.
}

// What a proxy says counts from that proxy alone.
func ExampleProxyHeader() {
	proxy := netip.MustParsePrefix("10.0.0.5/32")
	user, err := identity.NewProxyHeader("X-User", []netip.Prefix{proxy}, new(identity.Secret), identity.ProxyHeaderOptions{Kind: "user"})
	if err != nil {
		panic(err)
	}
	for _, peer := range []string{"10.0.0.5", "203.0.113.9"} {
		who, shown, _ := user.Prove(context.Background(), &identity.Request{
			Peer:   netip.MustParseAddr(peer),
			Header: map[string][]string{"X-User": {"alice"}},
		})
		fmt.Println(who.Name, shown)
	}
	// Output:
	// user:alice true
	//  false
}

// The Forwarded header is read from the right: what a client wrote into it, an open
// quote even, does not reach what the proxy adds.
func ExampleAddress_forwarded() {
	address, err := identity.NewAddress(identity.AddressOptions{
		Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.5/32")},
		Header:  "Forwarded",
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(address.Client(&identity.Request{
		Peer:   netip.MustParseAddr("10.0.0.5"),
		Header: map[string][]string{"Forwarded": {`for="9.9.9.9, for="[2001:db8::7]:443";proto=https`}},
	}))
	// Output: 2001:db8::7
}
