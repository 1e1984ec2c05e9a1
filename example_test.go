package comporta_test

import (
	"context"
	"fmt"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
)

func Example() {
	limit, _ := comporta.ParseLimit("100/min burst 2")
	store, _ := memstore.New(memstore.Options{})
	defer store.Close()
	limiter, _ := comporta.NewLimiter(store, limit)

	for range 3 {
		d, err := limiter.Take(context.Background(), "203.0.113.7", 1)
		fmt.Println(d.Allowed, d.Remaining, err)
	}
	// Output:
	// true 1 <nil>
	// true 0 <nil>
	// false 0 <nil>
}

// A quota counts over a calendar period, which is not the same as a duration.
func ExampleParseQuota() {
	quota, err := comporta.ParseQuota("10_000/month")
	fmt.Println(quota, quota.Calendar.Period, err)
	_, err = comporta.ParseQuota("10/30d")
	fmt.Println(err)
	// Output:
	// 10000/month month <nil>
	// quota: "30d" is no calendar period: use day, week, month or year, or write `limit: 10/30d`
}

// The arithmetic alone: no store, no clock.
func ExampleRule_Step() {
	limit, _ := comporta.ParseLimit("3/10s")
	rule, err := limit.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	var state comporta.State // a key never seen
	for _, second := range []comporta.Instant{0, 0, 0, 3, 4} {
		var d comporta.Decision
		state, d = rule.Step(state, second*1_000_000, 1)
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter)
	}
	// Output:
	// true 2 0s
	// true 1 0s
	// true 0 0s
	// false 0 333.334ms
	// true 0 0s
}
