package policy_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// Two limits on one request: ten a minute by address for everything, and three
// reports an hour.
func Example() {
	perMinute, _ := comporta.ParseLimit("10/min")
	perHour, _ := comporta.ParseLimit("3/h")
	reports, _ := policy.ParsePattern("GET /reports/{id}")
	address := new(identity.Address)

	store, err := memstore.New(memstore.Options{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	engine, err := policy.NewEngine(&policy.Policy{Limits: []*policy.Limit{
		{Name: "requests", Per: address, Limit: perMinute},
		{Name: "reports", Per: address, Limit: perHour, Match: []*policy.Pattern{reports}},
	}}, store, policy.Options{})
	if err != nil {
		panic(err)
	}

	var verdict policy.Verdict
	for id := range 4 {
		_, path, err := engine.CleanPath(fmt.Sprintf("/v1/../reports/%d", id))
		if err != nil {
			panic(err)
		}
		request := identity.Request{Method: "GET", Path: path, Peer: netip.MustParseAddr("203.0.113.7")}
		engine.Check(context.Background(), &request, &verdict)
		named := verdict.Applied[verdict.Named]
		fmt.Println(path, verdict.Allowed, named.Limit.Name, named.Decision.Remaining)
	}
	// Output:
	// /reports/0 true reports 2
	// /reports/1 true reports 1
	// /reports/2 true reports 0
	// /reports/3 false reports 0
}
