package identity_test

import (
	"fmt"

	"github.com/comporta/comporta/identity"
)

// Two keys of one client, while it changes the old one for the new one, are one
// identity. A key that nobody was given is none.
func ExampleAPIKey() {
	keys := []identity.Key{{ID: "acme", Plan: "pro"}, {ID: "acme", Plan: "pro"}}
	for i, key := range []string{"old-key", "new-key"} {
		sum, err := identity.SumKey(key)
		if err != nil {
			panic(err)
		}
		keys[i].Sum = sum
	}
	table, err := identity.NewKeys(keys)
	if err != nil {
		panic(err)
	}
	source, err := identity.NewAPIKey(identity.Places{Header: "X-API-Key", Bearer: true})
	if err != nil {
		panic(err)
	}
	source.Use(table)
	for _, r := range []identity.Request{
		{Header: map[string][]string{"X-Api-Key": {"old-key"}}},
		{Header: map[string][]string{"Authorization": {"Bearer new-key"}}},
		{Header: map[string][]string{"Authorization": {"Bearer made-up"}}},
	} {
		fmt.Println(source.Identity(&r))
	}
	// Output:
	// api_key:acme true
	// api_key:acme true
	//  false
}
