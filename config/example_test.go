package config_test

import (
	"errors"
	"fmt"

	"github.com/comporta/comporta/config"
)

// A file is a checked policy, or all that is wrong with it at once.
func ExampleParse() {
	_, err := config.Parse("policy.yaml", []byte(`limits:
  - name: search
    match: GET /search
    per: adress
    limit: 10/min
    algoritm: sliding_log
`))
	var problems config.Problems
	if errors.As(err, &problems) {
		fmt.Println(problems)
	}
	// Output:
	// policy.yaml:4:10: limit "search": unknown per "adress" (did you mean "address"?)
	// policy.yaml:6:5: limit "search": unknown word "algoritm" in a limit (did you mean "algorithm"?)
}

// Without a file, a policy of one limit is a few words.
func ExampleQuick() {
	c, err := config.Quick(config.QuickOptions{Upstream: "http://127.0.0.1:9000", Limit: "100/min burst 20", Per: "header:X-API-Key"})
	if err != nil {
		fmt.Println(err)
		return
	}
	limit := c.Policy.Limits[0]
	fmt.Println(limit.Name, limit.Limit, limit.Per)
	for _, w := range c.Warnings {
		fmt.Println(w.Code)
	}
	// Output:
	// default 100/min burst 20 {header: X-Api-Key}
	// W-FORGEABLE
}
